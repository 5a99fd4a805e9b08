package report

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
)

// trainInfo is the part of train.yaml that the page uses. It is read leniently, as plans are.
type trainInfo struct {
	Net     string `yaml:"net"`
	Imputer struct {
		ID          string  `yaml:"id"`
		Shape       []int   `yaml:"shape"`
		Alpha       float64 `yaml:"alpha"`
		HintRate    float64 `yaml:"hintRate"`
		MaximumRate float64 `yaml:"maximumRate"`
		Width       int     `yaml:"width"`
	} `yaml:"imputer"`
	Weights string `yaml:"weights"`
	Preset  struct {
		ID    string  `yaml:"id"`
		Scale float64 `yaml:"scale"`
	} `yaml:"preset"`
	Data struct {
		Path  string `yaml:"path"`
		Split string `yaml:"split"`
		Items int    `yaml:"items"`
	} `yaml:"data"`
	Validation struct {
		Split    string  `yaml:"split"`
		Fraction float64 `yaml:"fraction"`
		Items    int     `yaml:"items"`
	} `yaml:"validation"`
	Training struct {
		Epochs    int     `yaml:"epochs"`
		BatchSize int     `yaml:"batchSize"`
		Optimizer string  `yaml:"optimizer"`
		Rate      float64 `yaml:"rate"`
		Schedule  string  `yaml:"schedule"`
		Augment   string  `yaml:"augment"`
		Seed      uint64  `yaml:"seed"`
	} `yaml:"training"`
}

// trainInfo is zero where the run has no train.yaml that can be read: its text is on the page
// in any case.
func (r *run) trainInfo() (info trainInfo) {
	if err := yaml.Unmarshal([]byte(r.planText), &info); err != nil {
		r.note("train.yaml cannot be read: %v", err)
		return trainInfo{}
	}
	return info
}

// knownShare is the part of the pixels that is not removed, on average; 0: not known.
func (t trainInfo) knownShare() float64 {
	if t.Imputer.MaximumRate == 0 {
		return 0
	}
	return 1 - t.Imputer.MaximumRate/2
}

// settings are those that most readers ask for. Without train.yaml they are what the records
// have in common.
func (t trainInfo) settings(imputer string, common []fact) []fact {
	if t.Training.Epochs == 0 {
		for i := range common {
			if imputer != "" && common[i].Name == "net" {
				common[i].Name = "imputer"
			}
		}
		return common
	}
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
	out := []fact{{Name: "net", Value: t.Net}}
	if i := t.Imputer; imputer != "" {
		sizes := strings.Trim(strings.ReplaceAll(fmt.Sprint(i.Shape), " ", " × "), "[]")
		out = []fact{{Name: "imputer", Value: imputer}, {Name: "images", Value: sizes}, {Name: "alpha", Value: number(i.Alpha)}, {Name: "hint rate", Value: number(i.HintRate)},
			{Name: "maximum rate", Value: number(i.MaximumRate)}, {Name: "width", Value: strconv.Itoa(i.Width)}}
	}
	s := t.Training
	out = append(out, fact{Name: "epochs", Value: strconv.Itoa(s.Epochs)}, fact{Name: "batch size", Value: strconv.Itoa(s.BatchSize)},
		fact{Name: "rate", Value: fmt.Sprintf("%s, schedule %s", number(s.Rate), s.Schedule)}, fact{Name: "optimiser", Value: s.Optimizer})
	if s.Augment != "" {
		out = append(out, fact{Name: "augmentation", Value: s.Augment})
	}
	out = append(out, fact{Name: "data", Value: partOf(t.Data.Path, t.Data.Split, t.Data.Items)}, fact{Name: "validation", Value: t.validation()},
		fact{Name: "preset", Value: fmt.Sprintf("%s: values divided by %s", t.Preset.ID, number(t.Preset.Scale))})
	if t.Weights != "" {
		out = append(out, fact{Name: "starts from", Value: t.Weights})
	}
	return append(out, fact{Name: "seed", Value: strconv.FormatUint(s.Seed, 10)})
}

// partOf names data, a split of it and how many examples it has.
func partOf(what, split string, items int) string {
	if split != "" {
		what = strings.TrimPrefix(what+", split "+split, ", ")
	}
	return fmt.Sprintf("%s: %s", what, plural(items, "example", "examples"))
}

func (t trainInfo) validation() string {
	switch v := t.Validation; {
	case v.Split != "":
		return partOf("", v.Split, v.Items)
	case v.Fraction > 0:
		return partOf(percent(v.Fraction, 0)+" of the data", "", v.Items)
	}
	return "none"
}

// lede says what is shown, for somebody who has never seen it. What was not validated has no
// error to explain.
func (t trainInfo) lede(imputer string, validated bool) []string {
	best := "There was no validation part: the weights in best.safetensors are those of the last epoch, as in last.safetensors."
	if validated {
		best = "The validation part is run after the epoch, unchanged; the weights of the best epoch are in best.safetensors, those of the last in last.safetensors."
	}
	if imputer == "" {
		return []string{"One pass over the training examples is an epoch. Loss and accuracy on the training part are of the examples as they were seen: augmented, by the parameters of their time. " + best}
	}
	first := "A generator learns to fill in pixels that are missing, a discriminator to tell which were filled in."
	if known := t.knownShare(); known > 0 {
		first += fmt.Sprintf(" On average %s of the pixels are known: a discriminator that is right about no more cannot tell.", percent(known, 1))
	}
	if validated {
		first += " The error is the mean squared one over all pixels of images that were filled in, with values in 0..1: what is known counts as no error, and random parts of the images are missing." +
			" That of the mean image is what the mean of the training images would have in place of what is missing: a yardstick."
	}
	return []string{first, "One pass over the training images is an epoch. The generator's loss is what it is trained on: that the discriminator takes its pixels for real ones, and that it repeats what is known. It need not fall, as the discriminator learns too. " + best}
}
