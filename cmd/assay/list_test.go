package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/assay-xai/assay/weights"
)

func TestListNetsAndLayers(t *testing.T) {
	s := newShop(t, 0)
	code, out, errs := s.assay("list nets")
	require.Equal(t, 0, code, errs)
	code, text, errs := s.assay("list nets --json")
	require.Equal(t, 0, code, errs)
	var nets []listedNet
	require.NoError(t, json.Unmarshal([]byte(text), &nets))
	require.NotEmpty(t, nets)
	for _, n := range nets {
		require.Contains(t, out, n.ID)
		require.NotEmpty(t, n.Input, n.ID)
		require.NotEmpty(t, n.Preset, n.ID)
		code, out, errs := s.assay("list layers --net " + n.ID)
		require.Equal(t, 0, code, errs)
		require.Equal(t, len(n.Layers)+1, strings.Count(out, "\n"))
		code, same, errs := s.assay("list layers " + n.ID)
		require.Equal(t, 0, code, errs)
		require.Equal(t, out, same)
		code, one, errs := s.assay("list nets --json " + n.ID)
		require.Equal(t, 0, code, errs)
		var only []listedNet
		require.NoError(t, json.Unmarshal([]byte(one), &only))
		require.Equal(t, []listedNet{n}, only)
		code, one, errs = s.assay("list nets " + n.ID)
		require.Equal(t, 0, code, errs)
		require.Contains(t, one, n.Summary)
		require.True(t, strings.HasSuffix(one, out), "ends with the layers")
	}
}

func TestWhereWeightsAre(t *testing.T) {
	at := func(cached bool, url string) published {
		return published{weights.PublishedFile{BaseURL: url}, cached}
	}
	for _, c := range []struct {
		net  listedNet
		want string
	}{
		{listedNet{Weights: []published{at(true, "https://x"), at(false, "https://x")}}, "cached"},
		{listedNet{Weights: []published{at(false, "https://x"), at(true, "https://x")}}, "assay fetch"},
		{listedNet{Weights: []published{at(false, "")}}, "by setup"},
		{listedNet{Embedded: []string{"embedded:mlp-digits"}}, "embedded"},
		{listedNet{}, "--weights FILE"},
	} {
		require.Equal(t, c.want, whereWeights(c.net))
	}
}

func TestFetchList(t *testing.T) {
	s := newShop(t, 0)
	there := filepath.Join("cache", "assay", "weights", "resnet50-11ad3fa6.pth")
	s.write(there, "")
	code, out, errs := s.assay("fetch --list resnet50")
	require.Equal(t, 0, code, errs)
	lines := strings.Split(out, "\n")
	// torchvision's documentation of ResNet50_Weights: 97.8 MB, 76.13 and 80.858.
	for i, want := range [][]string{
		{"net", "version", "file", "MiB", "top-1 %", "preset", "cached", "licence"},
		{"resnet50", "IMAGENET1K_V1", "resnet50-0676ba61.pth", "97.8", "76.13", "imagenet ", "no", "BSD-3-Clause"},
		{"resnet50", "IMAGENET1K_V2", "resnet50-11ad3fa6.pth", "97.8", "80.86", "imagenet-v2", "yes", "BSD-3-Clause"},
	} {
		for _, w := range want {
			require.Contains(t, lines[i], w)
		}
	}
	require.Contains(t, out, "as published")
	require.Contains(t, out, filepath.Dir(there))

	code, out, errs = s.assay("fetch --list --json")
	require.Equal(t, 0, code, errs)
	var files []published
	require.NoError(t, json.Unmarshal([]byte(out), &files))
	require.Len(t, files, len(weights.Published()))
	for i, p := range weights.Published() {
		require.Equal(t, published{p, p.File == "resnet50-11ad3fa6.pth"}, files[i])
	}
}

// What a user sees of servers that are not what they should be.
func TestFetchComplains(t *testing.T) {
	s := newShop(t, 0)
	page := "<html>sign in</html>"
	sum := sha256.Sum256([]byte(page))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/portal/") {
			_, _ = w.Write([]byte(page))
			return
		}
		http.NotFound(w, r)
	}))
	defer server.Close()
	for _, c := range []struct{ words, want string }{
		{"fetch resnet18 --mirror " + server.URL, server.URL + "/resnet18-f37072fd.pth: the server says 404 Not Found"},
		{"fetch resnet50 --version V2 --mirror " + server.URL + "/portal/",
			server.URL + "/portal/resnet50-11ad3fa6.pth: its SHA-256 begins with " + hex.EncodeToString(sum[:4]) + ": want 11ad3fa6"},
	} {
		code, out, errs := s.assay(c.words + " --quiet")
		require.Equal(t, 1, code, errs)
		require.Empty(t, out)
		require.Contains(t, errs, c.want)
		require.Equal(t, 1, strings.Count(errs, "\n"), errs)
		left, err := os.ReadDir(filepath.Join("cache", "assay", "weights"))
		require.NoError(t, err)
		require.Empty(t, left)
	}
}

// One imputer or method, with what its parameters mean.
func TestListOne(t *testing.T) {
	s := newShop(t, 0)
	code, out, errs := s.assay("list imputers gain")
	require.Equal(t, 0, code, errs)
	require.Contains(t, out, "trained first: assay train --imputer gain --data DATA --out gain, then --generator gain/best.safetensors")
	require.Contains(t, out, "parameters: none")
	code, out, errs = s.assay("list imputers blur")
	require.Equal(t, 0, code, errs)
	require.Regexp(t, `(?m)^kernel +int +31 `, out)
	require.NotContains(t, out, "trained first")
	code, out, errs = s.assay("list methods mean --json")
	require.Equal(t, 0, code, errs)
	var list []listed
	require.NoError(t, json.Unmarshal([]byte(out), &list))
	require.Len(t, list, 1)
	require.Equal(t, "mean", list[0].ID)
	for words, want := range map[string]string{"imputers gian": `list imputers: "gian": did you mean gain`, "presets digits": "methods and imputers by one of theirs"} {
		code, _, errs = s.assay("list " + words)
		require.Equal(t, exitUsage, code)
		require.Contains(t, errs, want)
	}
}
