package weights

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/assay-xai/assay/internal/usage"
)

// allowance is a known way in which a good file differs from the net.
type allowance struct {
	// summary is for the documentation and warnings.
	summary string
	// rename returns the present spelling of an old name; "" for none.
	rename func(name string) string
	// spare says that a name of the file may be left over by a net that wants
	// these parameters.
	spare func(name string, wanted map[string]Parameter) bool
	// missing says that a parameter of the net may be absent.
	missing func(name string) bool
	// quiet: no warning, the difference means nothing.
	quiet bool
}

var denseNetOld = regexp.MustCompile(`^(.*denselayer\d+\.(?:norm|relu|conv))\.([12]\.(?:weight|bias|running_mean|running_var|num_batches_tracked))$`)

var transformerOld = regexp.MustCompile(`^(.*\.mlp\.)linear_([12])(\.(?:weight|bias))$`)

func isBatchCounter(name string) bool {
	return name == "num_batches_tracked" || strings.HasSuffix(name, ".num_batches_tracked")
}

// auxiliaryHeads are the prefixes of the heads that help in training, by a
// parameter that tells the net which has them.
var auxiliaryHeads = map[string][]string{
	"inception3a.branch1.conv.weight": {"aux1.", "aux2."}, // GoogLeNet
	"Mixed_5b.branch1x1.conv.weight":  {"AuxLogits."},     // Inception v3
}

func isAuxiliary(name string, wanted map[string]Parameter) bool {
	for tells, prefixes := range auxiliaryHeads {
		if _, ok := wanted[tells]; !ok {
			continue
		}
		if slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) }) {
			return true
		}
	}
	return false
}

// allowances are all there are; anything else is an error.
func allowances() []allowance {
	return []allowance{
		{
			summary: "num_batches_tracked (files from before PyTorch 0.4.1 lack it; inference does not use it)",
			spare:   func(name string, _ map[string]Parameter) bool { return isBatchCounter(name) },
			missing: isBatchCounter, quiet: true,
		},
		{
			summary: "DenseNet's old spelling norm.1 for norm1",
			rename: func(name string) string {
				if m := denseNetOld.FindStringSubmatch(name); m != nil {
					return m[1] + m[2]
				}
				return ""
			},
			quiet: true,
		},
		{
			summary: "the vision transformer's old spelling mlp.linear_1 for mlp.0, linear_2 for mlp.3",
			rename: func(name string) string {
				if m := transformerOld.FindStringSubmatch(name); m != nil {
					return m[1] + map[string]string{"1": "0", "2": "3"}[m[2]] + m[3]
				}
				return ""
			},
			quiet: true,
		},
		{
			summary: "auxiliary heads (GoogLeNet, Inception v3), unused in inference",
			spare:   isAuxiliary,
		},
	}
}

// Match picks the tensors that a net wants out of a state dict. Names and
// shapes have to be equal, except that
//   - num_batches_tracked may be missing or left over,
//   - DenseNet's old norm.1 and the vision transformer's old mlp.linear_1 are
//     understood,
//   - auxiliary heads of GoogLeNet and Inception v3 that the net does not list
//     are left out (one warning for all of them),
//   - parameters marked Optional may be missing.
//
// Wrappers and the "module." prefix are gone already (see [Open]). Parameters
// have to be floating-point (num_batches_tracked any type). The result has
// the net's names and shares its data with sd; it holds no tensor that the net
// did not ask for. The warnings are one line each, nil for none. The error says
// how many parameters are missing, unexpected or of another shape and names the
// first few; it does not name the file or the net, which the caller knows.
func Match(sd *StateDict, want []Parameter) (map[string]Tensor, []string, error) {
	m := matching{
		wanted: make(map[string]Parameter, len(want)),
		found:  make(map[string]Tensor, len(want)),
	}
	for _, p := range want {
		m.wanted[p.Name] = p
	}
	m.take(sd)
	m.compare(want)
	if err := m.err(sd, want); err != nil {
		return nil, nil, err
	}
	return m.found, m.warnings, nil
}

type matching struct {
	wanted   map[string]Parameter
	found    map[string]Tensor
	warnings []string

	missing, unexpected, misshaped, mistyped []string
}

// take gives every tensor of the file its place.
func (m *matching) take(sd *StateDict) {
	spare := map[string]int{}
	for _, name := range sd.Names {
		target := name
		if _, ok := m.wanted[name]; !ok {
			target = m.renamed(name, sd)
		}
		if target != "" {
			m.found[target] = sd.Tensors[name]
			continue
		}
		if a, ok := allowedSpare(name, m.wanted); ok {
			if !a.quiet {
				spare[a.summary]++
			}
			continue
		}
		m.unexpected = append(m.unexpected, name)
	}
	for _, a := range allowances() {
		if n := spare[a.summary]; n > 0 {
			m.warnings = append(m.warnings, fmt.Sprintf("left out %d tensors: %s", n, a.summary))
		}
	}
}

// renamed returns the wanted name that an old one stands for, unless the file
// has that too.
func (m *matching) renamed(name string, sd *StateDict) string {
	for _, a := range allowances() {
		if a.rename == nil {
			continue
		}
		target := a.rename(name)
		_, wanted := m.wanted[target]
		_, there := sd.Tensors[target]
		if wanted && !there {
			return target
		}
	}
	return ""
}

func allowedSpare(name string, wanted map[string]Parameter) (allowance, bool) {
	for _, a := range allowances() {
		if a.spare != nil && a.spare(name, wanted) {
			return a, true
		}
	}
	return allowance{}, false
}

func allowedMissing(p Parameter) bool {
	if p.Optional {
		return true
	}
	return slices.ContainsFunc(allowances(), func(a allowance) bool { return a.missing != nil && a.missing(p.Name) })
}

// compare looks at every parameter of the net, in its order.
func (m *matching) compare(want []Parameter) {
	for _, p := range want {
		t, ok := m.found[p.Name]
		switch {
		case !ok && !allowedMissing(p):
			m.missing = append(m.missing, p.Name)
		case !ok:
		case !slices.Equal(t.Shape, p.Shape):
			m.misshaped = append(m.misshaped, fmt.Sprintf("%s is %v, the net's %v", p.Name, t.Shape, p.Shape))
		case !dtypes[t.DType].floating && !isBatchCounter(p.Name):
			m.mistyped = append(m.mistyped, fmt.Sprintf("%s is %s", p.Name, t.DType))
		}
	}
}

func (m *matching) err(sd *StateDict, want []Parameter) error {
	var parts []string
	add := func(list []string, what string) {
		if len(list) > 0 {
			parts = append(parts, fmt.Sprintf("%d %s (%s)", len(list), what, first(list, 3)))
		}
	}
	add(m.missing, fmt.Sprintf("of the net's %d missing", len(want)))
	add(m.unexpected, fmt.Sprintf("of the file's %d not in the net", len(sd.Names)))
	add(m.misshaped, "of another shape")
	add(m.mistyped, "not floating-point")
	if len(parts) == 0 {
		return nil
	}
	advice := "want a state dict of this net"
	if len(m.missing) == 0 && len(m.unexpected) == 0 && len(m.mistyped) == 0 {
		advice = "the names are right: want a net of these sizes (for the last layer: the number of classes)"
	}
	return usage.Errorf("the weights are not this net's: %s: %s", strings.Join(parts, "; "), advice)
}
