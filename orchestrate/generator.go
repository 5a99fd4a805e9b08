package orchestrate

// GeneratorPlan is the trained generator of the imputer gain: a file of `assay train
// --imputer gain`, or train:NAME, one of the plan's trainings.
type GeneratorPlan struct {
	Weights string `yaml:"weights,omitempty"`
	Hash    string `yaml:"hash,omitempty"`
}
