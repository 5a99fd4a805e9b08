package orchestrate

import (
	"errors"
	"maps"
	"slices"

	"github.com/assay-xai/assay/internal/usage"
)

// LeftOut is a part of the grid that a net and its data have nothing for, in resolved
// plans: summaries list it as not measured, with its reason.
type LeftOut struct {
	Net  string `yaml:"net"`
	Data string `yaml:"data"`
	// Params are what the points that are left out have in common and others have not.
	Params map[string]any `yaml:"params,omitempty"`
	Reason string         `yaml:"reason"`
}

// elsewhere is why a point has nothing to measure on a net where that is what the plan asks
// for: nothing is missing.
type elsewhere struct{ error }

func (e *elsewhere) Unwrap() error { return e.error }

// omissions gathers what is left out while points are looked at.
type omissions struct {
	first  error
	parts  []omission
	points [][]Params // of parts
}

type omission struct {
	LeftOut
	// meant says that nothing is missing for it.
	meant bool
}

// add notes a point that a net and data have nothing for.
func (o *omissions) add(n *ResolvedNet, d *ResolvedData, point Params, err error) {
	part := LeftOut{Net: n.Name, Data: d.Name, Reason: err.Error()}
	i := slices.IndexFunc(o.parts, func(p omission) bool { return p.same(part) })
	if i < 0 {
		i = len(o.parts)
		var other *elsewhere
		o.parts, o.points = append(o.parts, omission{part, errors.As(err, &other)}), append(o.points, nil)
	}
	if o.first == nil {
		o.first = usage.Errorf("net %s: %w", n.Name, err)
	}
	o.points[i] = append(o.points[i], point)
}

// String is what the user is told: by net, each reason once.
func (o *omissions) String() string {
	l := leftOut{}
	net := ""
	for _, p := range o.parts {
		text := p.Reason
		if p.Net != net {
			text, net = "net "+p.Net+": "+text, p.Net
		}
		l.addText(text)
	}
	return l.String()
}

// list is what was left out of a grid with these points.
func (o *omissions) list(all []Params) []LeftOut {
	var out []LeftOut
	for i, part := range o.parts {
		if part.meant {
			continue
		}
		l, own := part.LeftOut, o.points[i]
		for _, k := range sortedKeys(own[0]) {
			same := func(p Params) bool { return plain(orEmpty(p[k])) == plain(orEmpty(own[0][k])) }
			other := func(p Params) bool { return !same(p) }
			if !slices.ContainsFunc(own, other) && slices.ContainsFunc(all, other) {
				if l.Params == nil {
					l.Params = map[string]any{}
				}
				l.Params[k] = own[0][k]
			}
		}
		out = append(out, l)
	}
	return out
}

// covers says whether a published row is of what was left out.
func (l LeftOut) covers(ref map[string]any) bool {
	for k, v := range map[string]any{"net": l.Net, "data": l.Data} {
		if want, ok := ref[k]; ok && plain(want) != plain(v) {
			return false
		}
	}
	named := len(l.Params) == 0
	for _, k := range sortedKeys(l.Params) {
		want, ok := ref[k]
		if ok && plain(want) != plain(l.Params[k]) {
			return false
		}
		named = named || ok
	}
	return named
}

// row is that of the summary.
func (l LeftOut) row() SummaryRow {
	params := Params{"data": l.Data}
	maps.Copy(params, l.Params)
	return SummaryRow{Net: l.Net, Params: params, Reading: ReadingNotMeasured, Reason: l.Reason}
}

// imputer is the one that is left out, "" where it is not that.
func (l LeftOut) imputer() string {
	for _, k := range []string{imputerKey, referenceKey} {
		if text, ok := l.Params[k].(string); ok {
			return text
		}
	}
	return ""
}

// same says whether two parts are of one net and data for one reason.
func (l LeftOut) same(other LeftOut) bool {
	return l.Net == other.Net && l.Data == other.Data && l.Reason == other.Reason
}
