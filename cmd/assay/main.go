// Command assay measures how good explanations of neural networks are.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"

	"github.com/assay-xai/assay/orchestrate"
)

// environment is what commands touch of the world; tests put fakes in it.
type environment struct {
	stdout, stderr io.Writer
	// terminal says that stderr is one, width columns wide.
	terminal bool
	open     orchestrate.Opener
}

func main() {
	spinShortly()
	if probing, err := runProbe(); probing {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(exitFailed)
		}
		return
	}
	surviveClosedPipes()
	env := environment{stdout: os.Stdout, stderr: os.Stderr, terminal: term.IsTerminal(int(os.Stderr.Fd())), open: openDevice}
	ctx, cancel := context.WithCancel(context.Background())
	go stopOnSignal(cancel, os.Stderr)
	os.Exit(run(ctx, env, os.Args[1:]))
}

// stopOnSignal ends the run cleanly at the first signal and at once at the second.
func stopOnSignal(cancel context.CancelFunc, w io.Writer) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	<-signals
	fmt.Fprintln(w, "\nassay: stopping; what is done is kept (once more: stop at once)")
	cancel()
	<-signals
	os.Exit(exitInterrupted)
}

// run is the program but for the process around it; it returns the exit code.
func run(ctx context.Context, env environment, args []string) int {
	env.stdout, env.stderr = &patient{w: env.stdout}, &patient{w: env.stderr}
	app := newApp(env)
	arranged, err := arrange(app, args)
	if err == nil {
		err = app.RunContext(ctx, append([]string{app.Name}, arranged...))
	}
	return report(env, wantsJSON(args), err)
}
