package main

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/orchestrate"
)

// commands lists every command.
func commands(env environment) []*cli.Command {
	return []*cli.Command{
		evalCommand(env),
		traceCommand(env),
		explainCommand(env),
		scoreCommand(env),
		roadCommand(env),
		trainCommand(env),
		runCommand(env),
		mergeCommand(env),
		slurmCommand(env),
		reportCommand(env),
		compareCommand(env),
		listCommand(env),
		fetchCommand(env),
		doctorCommand(env),
		benchCommand(env),
		versionCommand(env),
	}
}

func newApp(env environment) *cli.App {
	app := &cli.App{
		Name:                      "assay",
		Usage:                     "measure how good explanations of neural networks are",
		HideVersion:               true,
		Commands:                  commands(env),
		Writer:                    env.stdout,
		ErrWriter:                 io.Discard, // report prints errors, once
		ExitErrHandler:            func(*cli.Context, error) {},
		OnUsageError:              usageError,
		DisableSliceFlagSeparator: true,
		Action: func(c *cli.Context) error {
			return cli.ShowAppHelp(c)
		},
	}
	for _, c := range app.Commands {
		c.OnUsageError = usageError
	}
	return app
}

// usageError makes the parser's complaints errors of usage that say what would
// be right.
func usageError(c *cli.Context, err error, _ bool) error {
	if name, ok := strings.CutPrefix(err.Error(), "flag provided but not defined: "); ok {
		return unknownFlag(c, strings.TrimLeft(name, "-"))
	}
	text := err.Error()
	if m := invalidValue.FindStringSubmatch(text); m != nil {
		text = fmt.Sprintf("--%s %q: want %s", m[2], m[1], valueWanted(c, m[2]))
	}
	if name, ok := strings.CutPrefix(text, "flag needs an argument: -"); ok {
		text = "--" + strings.TrimLeft(name, "-") + " needs a value"
	}
	return usage.Mark(errors.New(text))
}

var invalidValue = regexp.MustCompile(`^invalid (?:boolean )?value "(.*)" for (?:flag )?-([a-z-]+): `)

func valueWanted(c *cli.Context, name string) string {
	if c.Command != nil {
		for _, f := range c.Command.Flags {
			for _, n := range f.Names() {
				if n != name {
					continue
				}
				switch f.(type) {
				case *cli.IntFlag:
					return "a whole number"
				case *cli.Float64Flag:
					return "a number"
				case *cli.BoolFlag:
					return "true or false, or no value"
				}
			}
		}
	}
	return "another value"
}

func unknownFlag(c *cli.Context, name string) error {
	var names []string
	if c.Command != nil {
		for _, f := range c.Command.Flags {
			names = append(names, f.Names()[0])
		}
	}
	name, _, _ = strings.Cut(name, "=")
	hint := ""
	if near := orchestrate.Nearest(name, names); len(near) > 0 {
		hint = "did you mean --" + strings.Join(near, " or --") + "? "
	}
	command := "assay"
	if c.Command != nil && c.Command.Name != "" && c.Command.Name != "assay" {
		command += " " + c.Command.Name
	}
	return usage.Errorf("unknown flag --%s: %ssee %s --help", name, hint, command)
}
