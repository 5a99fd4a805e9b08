package orchestrate

import (
	"math"
	"slices"
	"strings"

	"github.com/assay-xai/assay/internal/usage"
)

// fractionsType is the type of a parameter that is a list of fractions by itself, with
// "0.1,0.2" for a value: several lists make several points.
const fractionsType = "fractions"

// maxFractions bounds a list: more is a mistake.
const maxFractions = 1000

// lists are the values of a parameter of fractionsType: a list of numbers is one value.
func (d Parameter) lists(given any) []any {
	list, ok := given.([]any)
	if !ok || d.Type != fractionsType {
		return nil
	}
	text := 0
	for _, v := range list {
		switch v.(type) {
		case []any:
			return list
		case string:
			text++
		}
	}
	if text == len(list) && text > 0 { // as resolved plans have several
		return list
	}
	return []any{given}
}

// fractions reads a list of fractions, as numbers or as text, in its order.
func fractions(name string, v any) ([]float64, error) {
	var parts []any
	switch x := v.(type) {
	case []any:
		parts = x
	case string:
		for _, part := range strings.Split(x, ",") {
			if part = strings.TrimSpace(part); part != "" {
				parts = append(parts, part)
			}
		}
	default:
		parts = []any{v}
	}
	if len(parts) == 0 {
		return nil, usage.Errorf("%s: an empty list: want numbers from 0 to 1", name)
	}
	if len(parts) > maxFractions {
		return nil, usage.Errorf("%s: a list of %d: want at most %d", name, len(parts), maxFractions)
	}
	out := make([]float64, len(parts))
	for i, part := range parts {
		f, ok := toFloat(part)
		if !ok {
			return nil, usage.Errorf("%s: %s: want numbers from 0 to 1, for example 0.1,0.5,0.9", name, usage.Quote(plain(part)))
		}
		if f < 0 || f > 1 {
			return nil, usage.Errorf("%s: %s: want numbers from 0, nothing removed, to 1, everything", name, formatScalar(f))
		}
		out[i] = f + 0 // no minus zero
	}
	return out, nil
}

// fractionsText is the canonical form of a list.
func fractionsText(list []float64) string {
	parts := make([]string, len(list))
	for i, f := range list {
		parts[i] = formatScalar(f)
	}
	return strings.Join(parts, ",")
}

// fractionsOf are those of a point, ascending, each once.
func fractionsOf(p Params) []float64 {
	list, err := fractions(fractionsKey, p.Text(fractionsKey))
	if err != nil {
		return nil // was checked
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// removedCount is how many of n features the fraction p is, most relevant first: pn
// rounded, halves up. Least relevant first it is what 1-p leaves: halves down, so that
// both ends of one ranking make the whole (Rong et al. 2022, section 3).
func removedCount(p float64, n int, least bool) int {
	const digits = 1e9 // .1 * 5 is .5, whatever the last bit says
	exact := math.Round(p*float64(n)*digits) / digits
	if least {
		return int(math.Ceil(exact - .5))
	}
	return int(math.Floor(exact + .5))
}
