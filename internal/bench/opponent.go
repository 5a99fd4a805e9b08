package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// opponent is a Python process that runs scripts/bench_opponent.py: plain
// PyTorch programs, measured turn about with ours.
type opponent struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	version string
	// libraries are versions of those that explain and score, each after a comma.
	libraries string
}

// startOpponent returns nil without error where python has no torch.
func startOpponent(ctx context.Context, python, script string, threads int) (*opponent, error) {
	if python == "" || exec.CommandContext(ctx, python, "-c", "import torch, torchvision").Run() != nil {
		return nil, nil
	}
	cmd := exec.CommandContext(ctx, python, script)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(entry string) bool { return strings.HasPrefix(entry, "GOMP_SPINCOUNT=") }) // its own default
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", python, err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", python, err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", python, err)
	}
	o := &opponent{cmd: cmd, in: in, out: bufio.NewReader(out)}
	var hello struct {
		Torch       string `json:"torch"`
		Torchvision string `json:"torchvision"`
		// Not of plain PyTorch's.
		Captum, Quantus string
		GradCAM         string `json:"grad-cam"`
	}
	if err := o.ask(map[string]any{"do": "hello", "threads": threads}, &hello); err != nil {
		return nil, err
	}
	o.version = "PyTorch " + hello.Torch + ", torchvision " + hello.Torchvision
	for _, library := range []struct{ name, version string }{{"captum", hello.Captum}, {"pytorch-grad-cam", hello.GradCAM}, {"Quantus", hello.Quantus}} {
		if library.version != "" {
			o.libraries += ", " + library.name + " " + library.version
		}
	}
	return o, nil
}

// ask sends a command and waits for its answer.
func (o *opponent) ask(command map[string]any, answer any) error {
	text, err := json.Marshal(command)
	if err != nil {
		return fmt.Errorf("asking the opponent: %w", err)
	}
	if _, err := o.in.Write(append(text, '\n')); err != nil {
		return fmt.Errorf("asking the opponent %s: %w", text, err)
	}
	line, err := o.out.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("the opponent's answer to %s: %w", text, err)
	}
	if err := json.Unmarshal(line, answer); err != nil {
		return fmt.Errorf("the opponent's answer to %s: %w", text, err)
	}
	return nil
}

// asked is ask for an opponent that answers {"error": why} where a command fails.
func (o *opponent) asked(command map[string]any, answer any) error {
	var raw json.RawMessage
	if err := o.ask(command, &raw); err != nil {
		return err
	}
	var failed struct{ Error string }
	if err := errors.Join(json.Unmarshal(raw, &failed), json.Unmarshal(raw, answer)); err != nil {
		return fmt.Errorf("the opponent's answer %s: %w", raw, err)
	}
	if failed.Error != "" {
		return fmt.Errorf("the opponent: %s", failed.Error)
	}
	return nil
}

func (o *opponent) close() error {
	if o == nil {
		return nil
	}
	o.in.Close()
	return o.cmd.Wait()
}
