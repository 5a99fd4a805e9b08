//go:build deps

// Package deps pins modules until their first use.
package deps

import (
	_ "github.com/goccy/go-yaml"
	_ "github.com/google/renameio/v2"
	_ "github.com/nlpodyssey/gopickle/pickle"
	_ "github.com/nlpodyssey/gopickle/pytorch"
	_ "github.com/nlpodyssey/gopickle/types"
	_ "github.com/sbinet/npyio"
	_ "github.com/sbinet/npyio/npz"
	_ "github.com/schollz/progressbar/v3"
	_ "github.com/stretchr/testify/assert"
	_ "github.com/stretchr/testify/require"
	_ "github.com/urfave/cli/v2"
	_ "github.com/wangkuiyi/gotorch"
	_ "go.uber.org/goleak"
	_ "golang.org/x/image/draw"
	_ "golang.org/x/sync/errgroup"
	_ "golang.org/x/sys/unix"
	_ "golang.org/x/term"
	_ "gonum.org/v1/gonum/stat"
	_ "gonum.org/v1/plot/plotter"
	_ "gonum.org/v1/plot/vg/vgsvg"
	_ "pgregory.net/rapid"
)
