package main

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/assay-xai/assay/orchestrate"
)

// progress shows events: a bar on a terminal, else plain lines from time to
// time, or JSON lines, or nothing.
type progress struct {
	w        io.Writer
	json     bool
	quiet    bool
	terminal bool

	bar   *progressbar.ProgressBar
	stage string
	start time.Time // of the stage
	first float64   // done at its start
	last  time.Time // of the last line
}

// lineEvery is how often plain lines come.
const lineEvery = 5 * time.Second

func newProgress(env environment, asJSON, quiet bool) *progress {
	return &progress{w: env.stderr, json: asJSON, quiet: quiet, terminal: env.terminal}
}

func (p *progress) event(e orchestrate.Event) {
	switch {
	case p.quiet:
	case p.json:
		if e.Kind == orchestrate.Step && e.Done < e.Total && e.Stage == p.stage && time.Since(p.last) < time.Second/4 {
			return // programs want to keep up, not every step
		}
		p.stage, p.last = e.Stage, time.Now()
		line, err := json.Marshal(e)
		if err == nil {
			fmt.Fprintln(p.w, string(line))
		}
	case e.Kind == orchestrate.Warning:
		p.close()
		fmt.Fprintln(p.w, "warning:", e.Message)
	case e.Kind == orchestrate.Note:
		p.close()
		fmt.Fprintln(p.w, e.Message)
	case p.terminal:
		p.draw(e)
	default:
		p.line(e)
	}
}

func (p *progress) note(text string) {
	p.event(orchestrate.Event{Kind: orchestrate.Note, Message: text})
}

// draw moves the bar; a new stage gets a new one.
func (p *progress) draw(e orchestrate.Event) {
	if p.bar == nil || p.stage != e.Stage {
		p.close()
		p.stage = e.Stage
		p.bar = progressbar.NewOptions(barSteps*e.Total,
			progressbar.OptionSetWriter(p.w), progressbar.OptionSetDescription(e.Stage),
			progressbar.OptionSetPredictTime(true), progressbar.OptionThrottle(time.Second/10), progressbar.OptionClearOnFinish(),
			progressbar.OptionFullWidth(), progressbar.OptionUseANSICodes(true))
	}
	p.bar.Describe(fmt.Sprintf("%s: %d/%d%s", e.Stage, e.Done, e.Total, failedText(e.Failed)))
	p.bar.Set(int(barSteps * done(e)))
}

// barSteps is how finely the bar shows what is done of a unit.
const barSteps = 1000

// done counts parts of units too.
func done(e orchestrate.Event) float64 { return float64(e.Done) + e.Part }

// line prints where the stage stands, how fast it goes and how long it takes.
func (p *progress) line(e orchestrate.Event) {
	now := time.Now()
	if p.stage != e.Stage {
		p.stage, p.start, p.first, p.last = e.Stage, now, done(e), now
		if e.Stage == orchestrate.StageRun && e.Before > 0 {
			fmt.Fprintf(p.w, "%s: %d of %d units were done before\n", e.Stage, e.Before, e.Total)
		}
		return
	}
	if now.Sub(p.last) < lineEvery && (e.Done < e.Total || e.Stage != orchestrate.StageRun) {
		return
	}
	p.last = now
	part := ""
	if e.Part > 0 {
		part = fmt.Sprintf(" (%.0f %%)", 100*done(e)/float64(max(1, e.Total)))
	}
	fmt.Fprintf(p.w, "%s: %d/%d%s%s%s\n", e.Stage, e.Done, e.Total, part, failedText(e.Failed), p.pace(e, now))
}

func failedText(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", %d failed", n)
}

func (p *progress) pace(e orchestrate.Event, now time.Time) string {
	seconds := now.Sub(p.start).Seconds()
	if done(e) <= p.first || seconds <= 0 {
		return ""
	}
	rate := (done(e) - p.first) / seconds
	left := time.Duration((float64(e.Total) - done(e)) / rate * float64(time.Second)).Round(time.Second)
	if e.Done == e.Total {
		return fmt.Sprintf(", %.3g/s", rate)
	}
	return fmt.Sprintf(", %.3g/s, %s left", rate, left)
}

// close takes the bar away, so that something else can be printed.
func (p *progress) close() {
	if p.bar != nil {
		p.bar.Clear()
		p.bar = nil
	}
}
