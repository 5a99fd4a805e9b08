//go:build !cgo

package main

import (
	"context"
	"errors"
	"io"

	"github.com/assay-xai/assay/orchestrate"
)

// openDevice is for builds without C: everything but running nets.
func openDevice(string, int) (orchestrate.Backend, error) {
	return nil, errors.New("this assay was built without cgo and cannot run networks: build it with make build")
}

func runBench(context.Context, benchOptions, io.Writer) (string, error) {
	_, err := openDevice("", 0)
	return "", err
}

func runProbe() (bool, error) { return false, nil }
