package main

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/orchestrate"
)

// generatorFlag names the trained part of imputers that are nets.
func generatorFlag(category string) cli.Flag {
	return &cli.StringFlag{Name: "generator", Usage: "the trained generator of imputer gain: a `FILE` of assay train --imputer gain", Category: category}
}

// otherGenerator puts the flag's file into the plan. A training of the plan that it stands
// in for is left out.
func otherGenerator(c *cli.Context, plan *orchestrate.Plan) error {
	if !c.IsSet("generator") {
		return nil
	}
	file := c.String("generator")
	if file == "" {
		return usage.Errorf("--generator is empty: want a file of assay train --imputer gain")
	}
	if name, trained := strings.CutPrefix(plan.Generator.Weights, "train:"); trained {
		plan.Train = slices.DeleteFunc(slices.Clone(plan.Train), func(t orchestrate.TrainEntry) bool { return t.Name == name })
	}
	plan.Generator = orchestrate.GeneratorPlan{Weights: file}
	return nil
}
