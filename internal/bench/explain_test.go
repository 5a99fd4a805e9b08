package bench

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/assay-xai/assay/orchestrate"
	"github.com/assay-xai/assay/scores"
	"github.com/assay-xai/assay/torchx"
)

// Every method that the library has is measured against what its formula needs, with
// parameters that it takes.
func TestAttributionsAreKnown(t *testing.T) {
	text, err := torchx.Catalogue()
	require.NoError(t, err)
	var catalogue orchestrate.Catalogue
	require.NoError(t, json.Unmarshal(text, &catalogue))
	for _, s := range subjects() {
		s.channels = 8
		list := s.attributions(catalogue)
		require.Len(t, list, len(catalogue.Methods))
		for _, a := range list {
			require.True(t, a.known, "%s: what it needs is not in explain_methods.go", a.spec)
			_, _, err := catalogue.Method(a.spec)
			require.NoError(t, err, a.spec)
		}
	}
}

// Every score takes the parameters that it is measured with, and pixel flipping
// evaluates as often as Quantus does: 3*224*224/1024 and 3*32*32/32 times.
func TestJudgementsAreKnown(t *testing.T) {
	steps := map[string]float64{"resnet18": 147, "cifar-resnet20": 96}
	for _, s := range subjects() {
		var against []string
		for _, j := range s.judgements() {
			cost, err := j.Estimate(scores.Subject{Shape: []int{3, s.side(), s.side()}}, j.parameters)
			require.NoError(t, err, j.name())
			if len(j.others) > 0 {
				against = append(against, j.ID)
			}
			if want, ok := steps[s.id]; ok && len(against) == 1 && against[0] == j.ID {
				require.InEpsilon(t, want, cost.Forwards-1, .03, j.name())
			}
		}
		require.Equal(t, []string{"pixel-flipping", "pixel-flipping", "faithfulness-correlation", "infidelity"}, against)
	}
}

func TestLimit(t *testing.T) {
	// 2 forwards at 10 a second and 3 gradients at 5 a second take 0.8 s.
	require.InDelta(t, 1.25, needs{forwards: 2, gradients: 3}.limit(10, 5), 1e-12)
	require.InDelta(t, 5, needs{forwards: 2}.limit(10, 0), 1e-12)
}

// A line is shown against each other library, with what is wanted and whether it is so.
func TestLines(t *testing.T) {
	l := line{name: "m", needs: needs{gradients: 2}, known: true, ran: needs{gradients: 2}, ours: 9, limit: 10, with: []against{
		{other: other{library: "captum", want: 1.5}, rate: 6, batch: "batch 8"},
		{other: other{library: "Quantus", want: 3}, rate: 4},
		{other: other{library: "pytorch-grad-cam", want: 1}, rate: nan, why: "not installed"},
	}}
	require.Equal(t, []string{
		"| m | 9 | 2 g | 10 | 90 % | captum (batch 8) | 6 | 1.50 x | >= 1.5 x: yes; >= 85 %: yes |",
		"| m | 9 | 2 g | 10 | 90 % | Quantus | 4 | 2.25 x | >= 3 x: **no**; >= 85 %: yes |",
		"| m | 9 | 2 g | 10 | 90 % | pytorch-grad-cam | not installed | - | >= 85 %: yes |",
	}, l.cells())
	l = line{name: "m", needs: needs{forwards: 1}, known: true, ran: needs{forwards: 3}, ours: 4, limit: 10}
	require.Equal(t, []string{"| m | 4 | 1 f (ran 3 f) | 10 | 40 % | - | - | - | >= 85 %: **no** |"}, l.cells())
	l = line{name: "m", known: true, ours: 4, limit: nan}
	require.Equal(t, []string{"| m | 4 | no net | - | - | - | - | - | - |"}, l.cells())
}

func TestMatch(t *testing.T) {
	b := &bench{o: Options{Match: []string{"cifar", "grad-cam"}}}
	require.True(t, b.wants("cifar-resnet20"))
	require.False(t, b.wants("resnet18"), "another net was named")
	require.True(t, b.matches("cifar-resnet20", "guided-grad-cam"))
	require.False(t, b.matches("cifar-resnet20", "gradient"))
	b.o.Match = []string{"grad-cam"}
	require.True(t, b.wants("resnet18"))
}
