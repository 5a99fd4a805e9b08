package device

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/assay-xai/assay/orchestrate"
	"github.com/assay-xai/assay/torchx"
)

// generators are those that were asked for, ready to be run: of a plan there is one.
type generators struct {
	mu sync.Mutex
	of map[string]*torchx.Generator
}

// generator prepares a generator once; nil for none.
func (b *Backend) generator(ctx context.Context, g *orchestrate.Generator, precision torchx.Precision) (*torchx.Generator, error) {
	if g == nil {
		return nil, nil
	}
	b.generators.mu.Lock()
	defer b.generators.mu.Unlock()
	key := fmt.Sprint(g.Hash, " ", precision)
	if made := b.generators.of[key]; made != nil {
		return made, nil
	}
	tensors, err := tensorsOf(g.State)
	defer closeAll(tensors)
	if err != nil {
		return nil, fmt.Errorf("the generator: %w", err)
	}
	made, err := b.d.NewGenerator(ctx, tensors, precision)
	if err != nil {
		return nil, fmt.Errorf("preparing the generator: %w", mark(err))
	}
	if b.generators.of == nil {
		b.generators.of = map[string]*torchx.Generator{}
	}
	b.generators.of[key] = made
	return made, nil
}

// CheckGenerator says what is wrong with a generator, before anything is imputed with it.
func (b *Backend) CheckGenerator(ctx context.Context, g *orchestrate.Generator) error {
	_, err := b.generator(ctx, g, torchx.PrecisionF32)
	return err
}

func (g *generators) close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	var all []error
	for _, key := range slices.Sorted(maps.Keys(g.of)) {
		all = append(all, g.of[key].Close())
	}
	g.of = nil
	return errors.Join(all...)
}
