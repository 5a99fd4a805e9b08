package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/assay-xai/assay/internal/fake"
)

func TestGeneratorFlag(t *testing.T) {
	s := newShop(t, 3)
	require.NoError(t, fake.Generator("g.safetensors", []int{3, 8, 8}, 1))
	for _, words := range []string{
		"road --methods weights --imputers gain,zero --fractions .5 --generator g.safetensors --out road",
		"trace --edge 2 --iterations 2 --reference gain,zero --generator g.safetensors --out trace",
	} {
		code, out, errs := s.assay(words + common)
		require.Equal(t, 0, code, errs)
		require.Contains(t, out, "gain")
		study, _, _ := strings.Cut(words, " ")
		require.Regexp(t, `(?m)^generator:\n  weights: /.*/g.safetensors\n  hash: [0-9a-f]{64}$`, s.read(study+"/plan.yaml"))
		// The plan that is there goes on by itself, and with a copy.
		s.write("copy", s.read("g.safetensors"))
		for _, again := range []string{"", " --generator copy"} {
			code, _, errs = s.assay("run " + study + "/plan.yaml --out " + study + again)
			require.Equal(t, 0, code, errs)
			require.Regexp(t, `(\d+) of \d+ units were done before`, errs)
		}
	}
	code, _, errs := s.assay("road --methods weights --imputers zero --fractions .5 --generator g.safetensors" + common)
	require.Equal(t, 0, code)
	require.Contains(t, errs, "warning: generator g.safetensors: no imputer of the plan wants one: not used")
}

func TestGeneratorMistakes(t *testing.T) {
	s := newShop(t, 2)
	require.NoError(t, fake.Generator("other.safetensors", []int{1, 8, 8}, 1))
	s.refuses("road", map[string]string{
		"--methods weights --imputers gain":                                    "assay train --imputer gain --data DATA --out gain, then --generator gain/best.safetensors",
		"--methods weights --imputers gain --generator=":                       "--generator is empty",
		"--methods weights --imputers gain --generator nowhere":                "nowhere",
		"--methods weights --imputers gain --generator w.safetensors":          "w.safetensors is no generator",
		"--methods weights --imputers gain --generator other.safetensors":      "imputes images of 1x8x8, and the net takes 3x8x8",
		"--methods weights --imputers gain(x=1) --generator other.safetensors": `imputer gain: parameter "x": gain has no parameters`,
	})
	s.refuses("score", map[string]string{"--methods weights --metrics deletion(reference=gain)": "metrics take references that are an image's own"})
}

// A generator that is given stands in for the plan's training of one.
func TestGeneratorInPlaceOfATraining(t *testing.T) {
	s := newShop(t, 2)
	require.NoError(t, fake.Generator("g.safetensors", []int{3, 8, 8}, 1))
	s.write("plan.yaml", "version: 1\nstudy: road\ntrain: [{name: mine, imputer: gain, data: {path: nowhere}}]\ngenerator: {weights: 'train:mine'}\n"+
		"nets: [{net: tiny, weights: w.safetensors, preset: {id: small, resize: squash, height: 8, width: 8}}]\n"+
		"data: [{path: data}]\ngrid: {method: weights, imputer: gain, fractions: [.5]}\nbatch: 4\nthreads: 1\n")
	code, _, errs := s.assay("run plan.yaml --generator g.safetensors --out run")
	require.Equal(t, 0, code, errs)
	require.NotContains(t, s.read("run/plan.yaml"), "train:")
	code, _, errs = s.assay("slurm plan.yaml --generator g.safetensors --shards 2 --out jobs")
	require.Equal(t, 0, code, errs)
	require.Contains(t, s.read("jobs/plan.sbatch"), "run plan.yaml --generator g.safetensors --resolve-only")
}
