package bench

import (
	"fmt"
	"math"

	"github.com/assay-xai/assay/orchestrate"
)

// subject is a net that methods and scores are measured on.
type subject struct {
	id, title string
	// weights is a file of the data folder's weights; where it is not there, and
	// where this is "", parameters come from the formula.
	weights string
	small   bool // of CIFAR's size, where more is wanted against captum
	brief   bool // only some methods beside others, none that take long
	// Multiplications of a forward, for what a part of it costs.
	multiplications float64
	channels        int // of the layer that class activation maps look at, known with the net
}

func subjects() []subject {
	return []subject{
		{id: "resnet18", title: "ResNet-18, 224 px", multiplications: 1.814e9},
		{id: "cifar-resnet20", title: "CIFAR ResNet-20, 32 px", weights: "resnet20-12fca82f.th", small: true, multiplications: 40.6e6},
		{id: "efficientnet-lite0", title: "EfficientNet-Lite0, 224 px", brief: true, multiplications: 385e6},
	}
}

// needs is what a formula evaluates for an image: inputs whose output alone is
// looked at, and inputs whose gradient is. 0 and 0: no net.
type needs struct{ forwards, gradients float64 }

func (n needs) rows() float64 { return n.forwards + n.gradients }

// limit is images a second where nothing but the net takes time.
func (n needs) limit(forward, gradient float64) float64 {
	seconds := 0.0
	if n.forwards > 0 {
		seconds += n.forwards / forward
	}
	if n.gradients > 0 {
		seconds += n.gradients / gradient
	}
	return 1 / seconds
}

func (n needs) String() string {
	switch {
	case n.rows() == 0:
		return "no net"
	case n.gradients == 0:
		return fmt.Sprintf("%.4g f", n.forwards)
	case n.forwards == 0:
		return fmt.Sprintf("%.4g g", n.gradients)
	}
	return fmt.Sprintf("%.4g f + %.4g g", n.forwards, n.gradients)
}

// other is somebody else's way to do the same.
type other struct {
	library, method string
	options         map[string]any
	want            float64 // the ratio that is wanted at least; 0: none
	note            string  // on what is not the same
}

// attribution is a method as it is measured.
type attribution struct {
	spec   string // as users write it
	needs  needs
	tails  int // runs of the net after a layer, which are in needs by their cost
	others []other
	known  bool // what it needs is
}

// Counts that are the same on both sides: what is measured is the time an
// evaluation takes, so that few do.
const (
	benchSteps    = 50
	benchSamples  = 15
	benchPoints   = 5
	benchMasks    = 200
	benchSets     = 100
	benchOrders   = 2
	benchFeatures = 49
)

// attributions lists the methods of the catalogue, each with what its formula
// needs; those that are not known here are measured as they are by default.
func (s subject) attributions(c orchestrate.Catalogue) []attribution {
	var out []attribution
	for _, e := range c.Methods {
		a, ok := s.attribution(e.ID)
		if !ok {
			a = attribution{spec: e.ID}
		}
		a.known = ok
		out = append(out, a)
	}
	return out
}

func (s subject) attribution(id string) (attribution, bool) {
	least := 1.
	if s.small {
		least = 1.5
	}
	captum := func(want float64, options map[string]any) []other {
		return []other{{library: "captum", method: id, options: options, want: max(want, least)}}
	}
	cams := func() []other {
		return []other{{library: "pytorch-grad-cam", method: id, want: least}}
	}
	samples := func(n int) map[string]any { return map[string]any{"samples": n} }
	whole := float64(s.channels)
	list := map[string]attribution{
		"gradient":         {needs: needs{gradients: 1}, others: captum(1, nil)},
		"input-x-gradient": {needs: needs{gradients: 1}, others: captum(1, nil)},
		"integrated-gradients": {spec: fmt.Sprintf("integrated-gradients(steps=%d)", benchSteps), needs: needs{gradients: benchSteps},
			others: captum(1.5, map[string]any{"steps": benchSteps})},
		"smoothgrad":      {needs: needs{gradients: benchSamples}, others: captum(1, samples(benchSamples))},
		"smoothgrad-sq":   {needs: needs{gradients: benchSamples}, others: captum(1, samples(benchSamples))},
		"vargrad":         {needs: needs{gradients: benchSamples}, others: captum(1, samples(benchSamples))},
		"gradient-shap":   {needs: needs{gradients: benchPoints}, others: captum(1, samples(benchPoints))},
		"guided-backprop": {needs: needs{gradients: 1}, others: captum(1, nil)},
		"deconvolution":   {needs: needs{gradients: 1}, others: captum(1, nil)},
		// The gradient at the last layer costs next to nothing.
		"grad-cam":   {needs: needs{forwards: 1}, others: append(captum(1, nil), cams()...)},
		"grad-cam++": {needs: needs{forwards: 1}, others: cams()},
		"hires-cam":  {needs: needs{forwards: 1}, others: cams()},
		"layer-cam":  {needs: needs{forwards: 1}, others: cams()},
		"xgrad-cam":  {needs: needs{forwards: 1}, others: cams()},
		"eigen-cam":  {needs: needs{forwards: 1}, others: cams()},
		"score-cam":  {needs: needs{forwards: 1 + whole}, others: cams()},
		// The net once; after the layer, pooling and a linear layer for every channel,
		// in multiplications.
		"ablation-cam":     {needs: needs{forwards: 1 + (whole+1)*whole*s.classes()/s.multiplications}, tails: s.channels + 1, others: cams()},
		"guided-grad-cam":  {needs: needs{gradients: 1}, others: captum(1, nil)},
		"occlusion":        {needs: needs{forwards: 1 + benchFeatures}, others: captum(1, map[string]any{"window": s.window()})},
		"feature-ablation": {needs: needs{forwards: 1 + benchFeatures}, others: captum(1, nil)},
		"rise":             {spec: fmt.Sprintf("rise(samples=%d)", benchMasks), needs: needs{forwards: benchMasks}},
		"kernel-shap":      {spec: fmt.Sprintf("kernel-shap(samples=%d)", benchSets), needs: needs{forwards: benchSets}, others: captum(1, samples(benchSets))},
		"lime":             {spec: fmt.Sprintf("lime(samples=%d)", benchSets), needs: needs{forwards: benchSets}, others: captum(1, samples(benchSets))},
		"shapley-sampling": {spec: fmt.Sprintf("shapley-sampling(samples=%d)", benchOrders), needs: needs{forwards: 2 + benchOrders*(benchFeatures-1)},
			others: captum(1, samples(benchOrders))},
		"random":           {},
		"pixel-random":     {},
		"block-random":     {},
		"centred-gaussian": {},
		"sobel":            {},
		"blurred":          {needs: needs{gradients: 1}},
	}
	a, ok := list[id]
	if a.spec == "" {
		a.spec = id
	}
	if s.brief {
		switch id {
		case "gradient", "integrated-gradients", "smoothgrad", "guided-backprop", "grad-cam", "occlusion":
		default:
			a.others = nil
		}
	}
	return a, ok
}

func (s subject) classes() float64 {
	if s.small {
		return 10
	}
	return 1000
}

func (s subject) side() int {
	if s.small {
		return 32
	}
	return 224
}

// window is that of occlusion by default.
func (s subject) window() int { return int(math.Ceil(float64(s.side()) / 7)) }
