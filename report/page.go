package report

import (
	"cmp"
	"context"
	"embed"
	"fmt"
	"html/template"
	"slices"
	"strings"
)

//go:embed assets
var assets embed.FS

// pageTemplate is parsed once; it is never changed afterwards.
var pageTemplate = template.Must(template.New("").Funcs(template.FuncMap{
	"value": value, "decimal": decimal, "percent": percent, "probability": probability,
	"grouped": grouped, "seconds": seconds, "coordinate": coordinate, "plural": plural,
	"add":       func(a, b int) int { return a + b },
	"int64":     func(n int) int64 { return int64(n) },
	"hundredth": func(v float64) string { return coordinate(v * 100) },
	"sub":       func(a, b float64) float64 { return a - b },
	"dict":      dict,
	"breakable": breakable,
}).ParseFS(assets, "assets/*.html"))

// breakable lets a name's lines end after its punctuation, not within words.
func breakable(name string) template.HTML {
	return template.HTML(strings.NewReplacer(",", ",<wbr>", "(", "(<wbr>", "=", "=<wbr>", "·", "·<wbr>").Replace(template.HTMLEscapeString(name)))
}

// dict hands several values to a template: names and values in turn.
func dict(pairs ...any) (map[string]any, error) {
	m := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		name, ok := pairs[i].(string)
		if !ok {
			return nil, fmt.Errorf("report: template name %v: want a string", pairs[i])
		}
		m[name] = pairs[i+1]
	}
	return m, nil
}

// page is what the template shows.
type page struct {
	Title, Kind, Source string
	Lede                []string
	Facts               []fact
	Trace               *tracePage
	Transfer            *transferPage
	Eval                *evalPage
	Train               *trainPage
	Explain             *explainPage
	Score               *scorePage
	Road                *roadPage
	Figures             []figureBlock // of studies without a page of their own for them
	Summary             *summaryPage
	Claims              []claimLine
	Missing             []missingRows
	Failures            []failure
	MoreFailures        int
	Warnings            []warning
	Notes               []string
	Settings            []fact
	Env, MoreEnv        []fact
	Plan                string
	Empty               bool
	Unfinished          string // how far the run is; "": it has ended

	Style    template.CSS
	Gradient template.CSS
	Script   template.JS
}

type fact struct{ Name, Value, Note string }

// maxFailures and maxRows bound what is listed; all of it is in results.jsonl.
const (
	maxFailures = 200
	maxRows     = 2000
)

func (r *run) page(ctx context.Context) (*page, error) {
	p := &page{Failures: r.failures, Warnings: r.warnings, Plan: r.planText, Source: r.plan.Source}
	if n := len(p.Failures); n > maxFailures {
		p.Failures, p.MoreFailures = p.Failures[:maxFailures], n-maxFailures
	}
	style, err := assets.ReadFile("assets/style.css")
	if err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	script, err := assets.ReadFile("assets/script.js")
	if err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	p.Style, p.Script = template.CSS(style), template.JS(script)
	p.Gradient = template.CSS(heatGradient())
	p.Empty = len(r.entries) == 0
	p.Unfinished = r.unfinished()
	study := r.study()
	p.Kind = studyName(study)
	p.Title = cmp.Or(r.opt.Title, r.plan.Title, r.defaultTitle(study))

	traced := slices.ContainsFunc(r.entries, func(e *entry) bool { return e.trace })
	switch {
	case p.Empty:
		p.Lede = []string{"This run has no results yet. Its plan is below; the same command goes on with it."}
		if len(r.failures) > 0 {
			p.Lede = []string{"No unit of this run has a result: all failed. What went wrong is listed below."}
		}
	case study == "transfer" && traced:
		if p.Transfer, err = r.transferPage(ctx); err != nil {
			return nil, err
		}
		p.Lede, p.Facts = r.transferLede(), p.Transfer.facts
	case traced:
		if p.Trace, err = r.tracePage(ctx); err != nil {
			return nil, err
		}
		p.Lede, p.Facts = r.traceLede(), p.Trace.facts
	case study == "eval":
		if p.Eval, err = r.evalPage(); err != nil {
			return nil, err
		}
		p.Lede, p.Facts = r.evalLede(), p.Eval.facts
	case study == "explain":
		if p.Explain, err = r.explainPage(ctx); err != nil {
			return nil, err
		}
		p.Lede, p.Facts = r.explainLede(), p.Explain.facts
	case study == "score":
		if p.Score, err = r.scorePage(ctx); err != nil {
			return nil, err
		}
		p.Lede, p.Facts = r.scoreLede(), p.Score.facts
	case study == "road":
		if p.Road, err = r.roadPage(ctx); err != nil {
			return nil, err
		}
		p.Lede, p.Facts = r.roadLede(), p.Road.facts
	case len(r.epochsOf()) > 0:
		p.Train = r.trainPage()
		p.Lede, p.Facts = p.Train.lede, p.Train.facts
	default:
		p.Lede = []string{fmt.Sprintf("Results of the study %q: means over images, with 95 %% confidence bounds.", study)}
		p.Facts = []fact{{"results", grouped(int64(len(r.entries))), ""}}
	}
	if p.Score != nil || p.Road != nil {
		p.Lede = append(p.Lede, r.givenLede()...)
	}
	if index, of, ok := strings.Cut(r.plan.Shard, "/"); ok {
		p.Lede = append([]string{fmt.Sprintf("Shard %s of %s: part of the units. Means, bounds and ranks are of its images alone; assay merge makes one run of all shards.", index, of)}, p.Lede...)
	}
	if p.Trace == nil && p.Transfer == nil {
		if p.Figures, err = r.figures(ctx, nil); err != nil {
			return nil, err
		}
	}
	if n := len(r.failures); n > 0 {
		p.Facts = append(p.Facts, fact{"failed", grouped(int64(n)), "listed below"})
	}
	p.Summary = r.summaryPage(p.Trace == nil && p.Transfer == nil && p.Eval == nil && p.Explain == nil && p.Score == nil && p.Road == nil)
	p.Claims, p.Missing = r.claims(), r.missing()
	p.Settings = r.settings()
	if p.Train != nil {
		p.Settings = p.Train.settings
	}
	p.Env, p.MoreEnv = r.environment()
	p.Notes = r.notes
	return p, nil
}

func (r *run) study() string {
	if len(r.entries) > 0 {
		return r.entries[0].study
	}
	return r.plan.Study
}

func studyName(study string) string {
	names := map[string]string{"trace": "deletion search", "eval": "accuracy", "train": "training", "transfer": "transfer of trajectories", "explain": "maps of attribution", "score": "scores of maps", "road": "removal and imputation"}
	if n, ok := names[study]; ok {
		return n
	}
	return study
}

func (r *run) defaultTitle(study string) string {
	var nets []string
	for _, g := range r.groups {
		if !slices.Contains(nets, g.net) {
			nets = append(nets, g.net)
		}
	}
	if len(nets) == 0 {
		for _, n := range r.plan.Nets {
			nets = append(nets, cmp.Or(n.Name, n.Net))
		}
	}
	if len(nets) > 4 {
		nets = append(nets[:3:3], fmt.Sprintf("%d more", len(nets)-3))
	}
	verb := map[string]string{"trace": "What matters to ", "eval": "How well ", "train": "Training ", "transfer": "What they share: ", "explain": "Explaining ", "score": "Judging explanations of ", "road": "Removing what explanations find: "}[study]
	switch {
	case len(nets) == 0:
		return "Report of a run"
	case study == "eval" && len(nets) == 1:
		return verb + list(nets) + " sees"
	case study == "eval":
		return verb + list(nets) + " see"
	case verb != "":
		return verb + list(nets)
	}
	return study + " of " + list(nets)
}

// settings are the parameters that all results share.
func (r *run) settings() []fact {
	names := make([]string, 0, len(r.common))
	for k, v := range r.common {
		if v != "" {
			names = append(names, k)
		}
	}
	sortFacts(names)
	out := make([]fact, 0, len(names))
	for _, k := range names {
		out = append(out, fact{Name: factName(k), Value: r.common[k]})
	}
	return out
}
