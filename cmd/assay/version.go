package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/urfave/cli/v2"
)

// release is the version of the program.
const release = "0.1.0"

// version is the release, and the commit where it is known.
func version() string {
	commit, changed := "", ""
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision":
				commit = s.Value
			case s.Key == "vcs.modified" && s.Value == "true":
				changed = " and changes"
			}
		}
	}
	if len(commit) < 12 {
		return release
	}
	return fmt.Sprintf("%s (%s%s)", release, commit[:12], changed)
}

func versionCommand(env environment) *cli.Command {
	return &cli.Command{
		Name:  "version",
		Usage: "print the version",
		Flags: outputFlags(),
		Action: func(c *cli.Context) error {
			if err := noPositionals(c); err != nil {
				return err
			}
			if c.Bool("json") {
				return printJSON(env, map[string]string{"version": version(), "go": runtime.Version()})
			}
			_, err := fmt.Fprintf(env.stdout, "assay %s, %s\n", version(), runtime.Version())
			return err
		},
	}
}
