package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/orchestrate"
)

// Exit codes.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitIncomplete  = 3
	exitInterrupted = 130
)

// exitCode is the one place that says which error ends the program how.
func exitCode(err error) int {
	var incomplete *orchestrate.Incomplete
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	case errors.As(err, &incomplete):
		return exitIncomplete
	case errors.Is(err, usage.Err):
		return exitUsage
	}
	return exitFailed
}

// report prints an error, in one line or as JSON, and returns the exit code.
func report(env environment, asJSON bool, err error) int {
	code := exitCode(err)
	if code == exitOK {
		return code
	}
	message := explain(err)
	if asJSON {
		line, _ := json.Marshal(map[string]any{"error": message, "code": code})
		fmt.Fprintln(env.stderr, string(line))
	} else {
		fmt.Fprintln(env.stderr, "assay: "+message)
	}
	return code
}

// explain is the error in one line, with what would help.
func explain(err error) string {
	message := strings.Join(strings.Fields(strings.ReplaceAll(err.Error(), "\n", "; ")), " ")
	switch {
	case errors.Is(err, context.Canceled):
		if message = strings.ReplaceAll(message, ": "+context.Canceled.Error(), ""); message == context.Canceled.Error() {
			return "stopped; the same command goes on from here"
		}
		return "stopped; the same command goes on from here (" + message + ")"
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return message + ": make room and give the same command again; nothing that is done is lost"
	}
	return message
}

// wantsJSON looks for --json without parsing: errors of parsing want it too.
func wantsJSON(args []string) bool {
	if i := slices.Index(args, "--"); i >= 0 {
		args = args[:i]
	}
	return slices.Contains(args, "--json") || slices.Contains(args, "-json") || slices.Contains(args, "--json=true")
}
