package torchx

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/assay-xai/assay/internal/rng"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Go's test cache does not see shared libraries: reading them makes a test
// depend on them.
func TestLibrariesAreThere(t *testing.T) {
	for _, name := range []string{"libtorchx.so", "libcgotorch.so"} {
		_, err := os.Stat(filepath.Join("..", "build", "lib", name))
		require.NoError(t, err, "run make build")
	}
}

func cpu(t *testing.T) *Device {
	t.Helper()
	d, err := Open("cpu", 2)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

// formula is the images of scripts/golden_references.py.
func formula(n int) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = float32(float64(uint32(uint64(i)*2654435761))/(1<<32)*4 - 2)
	}
	return out
}

func TestReferencesAgainstGoldens(t *testing.T) {
	text, err := os.ReadFile("testdata/references.json")
	require.NoError(t, err)
	var golden struct {
		Shape     []int64
		Edge      int
		Positions []int
		Cases     []struct {
			Spec   json.RawMessage
			Values []float64
		}
	}
	require.NoError(t, json.Unmarshal(text, &golden))
	require.NotEmpty(t, golden.Cases)
	d := cpu(t)
	n, c, h, w := int(golden.Shape[0]), int(golden.Shape[1]), int(golden.Shape[2]), int(golden.Shape[3])
	x, err := NewFloats(golden.Shape, formula(n*c*h*w))
	require.NoError(t, err)
	defer x.Close()
	featureMap := make([]int32, h*w)
	for i := range featureMap {
		row, column := min(i/w/(h/golden.Edge), golden.Edge-1), min(i%w/(w/golden.Edge), golden.Edge-1)
		featureMap[i] = int32(row*golden.Edge + column)
	}
	for _, g := range golden.Cases {
		t.Run(string(g.Spec), func(t *testing.T) {
			got, err := d.Reference(context.Background(), x, ReferenceSpec{
				JSON: g.Spec, Mean: []float32{.485, .456, .406}, Std: []float32{.229, .224, .225},
				Features: golden.Edge * golden.Edge, FeatureMap: featureMap,
			})
			require.NoError(t, err)
			defer got.Close()
			values, err := got.Floats()
			require.NoError(t, err)
			for i, p := range golden.Positions {
				require.InDelta(t, g.Values[i], values[p], 2e-6, "position %d", p)
			}
		})
	}
}

// The noise of an image is that of internal/rng under its key, whatever else is
// in the batch.
func TestUniformReferenceIsKeyed(t *testing.T) {
	d := cpu(t)
	shape := []int64{2, 3, 5, 4}
	x, err := NewFloats(shape, make([]float32, 120))
	require.NoError(t, err)
	defer x.Close()
	keys := []uint64{rng.Key(3, "reference/uniform", "a.png"), rng.Key(3, "reference/uniform", "b.png")}
	mean, std := []float32{.5, .25, .125}, []float32{.25, .5, 1}
	got, err := d.Reference(context.Background(), x, ReferenceSpec{JSON: []byte(`{"id":"uniform"}`), Mean: mean, Std: std, Keys: keys})
	require.NoError(t, err)
	defer got.Close()
	values, err := got.Floats()
	require.NoError(t, err)
	for i, v := range values {
		image, position := i/60, i%60
		c := position / 20
		want := (rng.Stream{Key: keys[image]}.Float64(uint64(position), 0) - float64(mean[c])) / float64(std[c])
		require.Equal(t, float32(want), v)
	}
}

func TestReferenceErrors(t *testing.T) {
	d := cpu(t)
	x, err := NewFloats([]int64{1, 3, 8, 8}, make([]float32, 192))
	require.NoError(t, err)
	defer x.Close()
	table, err := NewFloats([]int64{1, 8}, make([]float32, 8))
	require.NoError(t, err)
	defer table.Close()
	for _, c := range []struct {
		spec string
		x    *Tensor
		is   error
		says string
	}{
		{`{"id":"nothing"}`, x, ErrNotFound, "zero, mean"},
		{`{"id":"blur"}`, x, ErrInvalid, "at most 15"},
		{`{"id":"blur","kernel":4}`, x, ErrInvalid, "odd"},
		{`{"id":"blur","sigma":-1}`, x, ErrInvalid, "at least"},
		{`{"id":"blur","sigma":"x"}`, x, ErrInvalid, "want a float"},
		{`{"id":"blur","radius":3}`, x, ErrInvalid, "want kernel, sigma"},
		{`{"id":"blur"}`, table, ErrUnsupported, "table"},
		{`{"id":"uniform"}`, x, ErrInvalid, "keys"},
		{`{"id":"patch-mean"}`, x, ErrInvalid, "patches"},
		{`{"id":"image"}`, x, ErrInvalid, "no other image"},
		{`{"id":"constant"}`, x, ErrInvalid, "mean"},
		{`not json`, x, ErrInvalid, "want {"},
	} {
		_, err := d.Reference(context.Background(), c.x, ReferenceSpec{JSON: []byte(c.spec)})
		require.ErrorIs(t, err, c.is, c.spec)
		require.Contains(t, err.Error(), c.says, c.spec)
	}
}

func TestTensorLifetime(t *testing.T) {
	x, err := NewFloats([]int64{2, 3}, []float32{1, 2, 3, 4, 5, 6})
	require.NoError(t, err)
	require.Equal(t, []int64{2, 3}, x.GoTorch().Shape()) // gotorch sees the same tensor
	row, err := x.Row(1)
	require.NoError(t, err)
	values, err := row.Floats()
	require.NoError(t, err)
	require.Equal(t, []float32{4, 5, 6}, values)
	_, err = row.Doubles()
	require.ErrorIs(t, err, ErrInvalid)
	require.NoError(t, x.Close())
	require.NoError(t, x.Close())
	values, err = row.Floats() // shares memory, lives on
	require.NoError(t, err)
	require.Equal(t, []float32{4, 5, 6}, values)
	require.NoError(t, row.Close())
	_, _, err = x.Describe()
	require.ErrorIs(t, err, ErrClosed)
	_, err = NewTensor(F32, []int64{2, 3}, make([]byte, 8))
	require.ErrorIs(t, err, ErrInvalid)
	_, err = NewTensor(F32, []int64{-1}, nil)
	require.ErrorIs(t, err, ErrInvalid)
	_, err = NewTensor(F32, []int64{1 << 40, 1 << 40}, nil)
	require.ErrorIs(t, err, ErrInvalid)
	_, err = NewTensor(F32, []int64{1 << 50}, nil)
	require.ErrorIs(t, err, ErrInvalid)
	empty, err := NewFloats([]int64{0, 3}, nil)
	require.NoError(t, err)
	require.NoError(t, empty.Close())
}

// A finaliser frees what nobody closed, and does not free twice what somebody did.
func TestFinalisers(t *testing.T) {
	for i := range 200 {
		x, err := NewFloats([]int64{1000}, make([]float32, 1000))
		require.NoError(t, err)
		if i%2 == 0 {
			require.NoError(t, x.Close())
		}
	}
	for range 3 {
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
}

func TestDevices(t *testing.T) {
	for _, c := range []struct {
		name string
		is   error
	}{{"gpu", ErrInvalid}, {"cuda:x", ErrInvalid}, {"cuda:-1", ErrInvalid}, {"", ErrInvalid}, {"cuda:99", ErrNotFound}} {
		_, err := Open(c.name, 1)
		require.ErrorIs(t, err, c.is, c.name)
	}
	_, err := Open("cpu", -3)
	require.ErrorIs(t, err, ErrInvalid)
	d, err := Open("cpu", 1)
	require.NoError(t, err)
	free, total, err := d.Memory()
	require.NoError(t, err)
	require.Positive(t, free)
	require.LessOrEqual(t, free, total)
	text, err := d.Runtime(context.Background())
	require.NoError(t, err)
	var described struct {
		Torch, TorchBuilt string
		Threads           int
		OpenMP            bool
	}
	require.NoError(t, json.Unmarshal(text, &described))
	require.Equal(t, described.TorchBuilt, described.Torch)
	require.Equal(t, 1, described.Threads, "threads are set on the device's own OS thread")
	require.NoError(t, d.Trim(context.Background()))
	require.NoError(t, d.Synchronize(context.Background()))
	require.NoError(t, d.Close())
	require.NoError(t, d.Close())
	require.ErrorIs(t, d.Trim(context.Background()), ErrClosed)
}

// Calls from many goroutines are queued; a cancelled one that waits leaves.
func TestExecutor(t *testing.T) {
	d := cpu(t)
	var group sync.WaitGroup
	counter := 0 // no lock: the device's thread is the lock
	for range 50 {
		group.Go(func() {
			require.NoError(t, d.do(context.Background(), "count", func() error { counter++; return nil }))
		})
	}
	group.Wait()
	require.Equal(t, 50, counter)
	release := make(chan struct{})
	running := make(chan struct{})
	group.Go(func() {
		_ = d.do(context.Background(), "hold", func() error { close(running); <-release; return nil })
	})
	<-running
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, d.do(ctx, "late", func() error { t.Error("ran"); return nil }), context.Canceled)
	close(release)
	group.Wait()
}

func TestSceneErrors(t *testing.T) {
	d := cpu(t)
	ctx := context.Background()
	for _, c := range []struct {
		slots, features int
		shape           []int
		featureMap      []int32
	}{
		{0, 1, []int{1, 1, 1}, []int32{0}},
		{1, 0, []int{1, 1, 1}, []int32{0}},
		{1, 1, []int{1, 1, 1}, []int32{1}},
		{1, 1, []int{1, 1, 1}, []int32{-1}},
		{1, 1, []int{1, 2, 1}, []int32{0}},
		{1, 1, []int{1, 2}, []int32{0}},
	} {
		_, err := d.NewScene(ctx, c.slots, c.shape, c.features, c.featureMap)
		require.ErrorIs(t, err, ErrInvalid)
	}
	s, err := d.NewScene(ctx, 1, []int{1, 2, 2}, 4, []int32{0, 1, 2, 3})
	require.NoError(t, err)
	good, err := NewFloats([]int64{1, 2, 2}, []float32{1, 2, 3, 4})
	require.NoError(t, err)
	defer good.Close()
	bad, err := NewFloats([]int64{1, 2, 3}, make([]float32, 6))
	require.NoError(t, err)
	defer bad.Close()
	require.NoError(t, s.Put(ctx, 0, good, good))
	require.ErrorIs(t, s.Put(ctx, 1, good, good), ErrInvalid)
	require.ErrorIs(t, s.Put(ctx, 0, good, bad), ErrInvalid)
	require.ErrorIs(t, s.Put(ctx, 0, nil, good), ErrInvalid)
	require.NoError(t, s.Close())
	require.NoError(t, s.Close())
	require.ErrorIs(t, s.Put(ctx, 0, good, good), ErrClosed)
}

func TestErrorsAreDistinct(t *testing.T) {
	err := error(&Error{Code: CodeInvalid, Op: "x", Msg: "y"})
	require.ErrorIs(t, err, ErrInvalid)
	require.NotErrorIs(t, err, ErrInternal)
	require.Equal(t, "x: y", err.Error())
}
