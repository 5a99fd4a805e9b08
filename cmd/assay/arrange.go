package main

import (
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/orchestrate"
)

// arrange puts a command's flags before its positional arguments: the parser
// stops reading flags at the first positional. What follows "--" stays. An
// unknown command is an error that offers the nearest.
func arrange(app *cli.App, args []string) ([]string, error) {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") {
		return args, nil
	}
	var names []string
	var command *cli.Command
	for _, c := range app.Commands {
		names = append(names, c.Name)
		if c.HasName(args[0]) {
			command = c
		}
	}
	if args[0] == "help" || args[0] == "h" {
		return args, nil
	}
	if command == nil {
		return nil, usage.Errorf("unknown command %q: %s", args[0], orchestrate.DidYouMean(args[0], names))
	}
	flags, rest := hoist(command.Flags, args[1:])
	return append(append([]string{args[0]}, flags...), rest...), nil
}

// hoist divides arguments into flags with their values and the others, each in
// the order given. A flag that the command does not have is taken to have no
// value; the parser refuses it anyhow.
func hoist(known []cli.Flag, args []string) (flags, rest []string) {
	takesValue := map[string]bool{}
	for _, f := range known {
		_, isBool := f.(*cli.BoolFlag)
		for _, name := range f.Names() {
			takesValue[name] = !isBool
		}
	}
	for i := 0; i < len(args); i++ {
		a := args[i]
		if a == "--" {
			return flags, append(append(rest, "--"), args[i+1:]...)
		}
		if a == "-" || !strings.HasPrefix(a, "-") {
			rest = append(rest, a)
			continue
		}
		flags = append(flags, a)
		name, _, hasValue := strings.Cut(strings.TrimLeft(a, "-"), "=")
		if !hasValue && takesValue[name] && i+1 < len(args) {
			i++
			flags = append(flags, args[i])
		}
	}
	return flags, rest
}
