package device

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/assay-xai/assay/internal/fill"
	"github.com/assay-xai/assay/internal/usage"
	"github.com/assay-xai/assay/orchestrate"
	"github.com/assay-xai/assay/torchx"
	"github.com/assay-xai/assay/weights"
)

// Some virtual machines announce matrix instructions (AMX) that trap when they
// are used: bf16 in oneDNN then ends the process. So bf16 on the CPU is tried in
// a child process first, and where that dies, again without those instructions.
const (
	probeVariable = "ASSAY_PROBE"
	isaVariable   = "ONEDNN_MAX_CPU_ISA"
	isaWithoutAMX = "AVX512_CORE_FP16"
	probeSeconds  = 60
)

// RunProbe runs the probe if this process was started as one, and says whether
// it was: the program calls it before anything else.
func RunProbe() (probing bool, err error) {
	if os.Getenv(probeVariable) != "bf16" {
		return false, nil
	}
	return true, probeBF16(context.Background())
}

// probeBF16 runs a small net in bf16.
func probeBF16(ctx context.Context) error {
	b, err := Open("cpu", 1)
	if err != nil {
		return err
	}
	defer b.Close()
	info, err := b.Describe(ctx, "cifar-resnet20", 0, 0)
	if err != nil {
		return err
	}
	state := map[string]weights.Tensor{}
	for _, p := range info.Parameters {
		if !p.Optional {
			state[p.Name] = fill.Weights(p.Name, p.Shape, p.Buffer)
		}
	}
	n, err := b.OpenNet(ctx, orchestrate.NetSpec{Net: info.Net, Precision: "bf16"}, state)
	if err != nil {
		return err
	}
	defer n.Close()
	shape := []int64{2, 3, 32, 32}
	x, err := b.Arrays(ctx, fill.Input(shape), info.Input)
	if err != nil {
		return err
	}
	defer x.Close()
	_, err = n.Predict(ctx, x, 1, 2)
	return err
}

// makeBF16Safe probes once a process. Programs other than assay (tests, users
// of the packages) are not started again and are trusted.
func (b *Backend) makeBF16Safe(ctx context.Context, precision torchx.Precision) error {
	if precision != torchx.PrecisionBF16 || b.Kind() != "cpu" || os.Getenv(probeVariable) != "" {
		return nil
	}
	b.probe.Do(func() { b.probeError = probe(ctx) })
	return b.probeError
}

func probe(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil || filepath.Base(self) != "assay" {
		return nil
	}
	try := func(extra ...string) error {
		ctx, cancel := context.WithTimeout(ctx, probeSeconds*time.Second)
		defer cancel()
		cmd := exec.CommandContext(ctx, self)
		cmd.Env = append(append(os.Environ(), probeVariable+"=bf16"), extra...)
		return cmd.Run()
	}
	first := try()
	if first == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	if try(isaVariable+"="+isaWithoutAMX) == nil {
		// Nothing has run in this process yet that made oneDNN look.
		return os.Setenv(isaVariable, isaWithoutAMX)
	}
	return usage.Errorf("precision bf16: a trial of it in a process of its own failed (%w): this CPU cannot run it; take f32", first)
}
