package torchx

// #include "torchx.h"
import "C"

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"unsafe"
)

// ScriptSpec says how a TorchScript file is taken.
type ScriptSpec struct {
	// Name becomes the net's id.
	Name string `json:"name"`
	// Input is the shape of one row, [C,H,W] or [F].
	Input []int `json:"input"`
}

// NetFromTorchScript reads a file that torch.jit.save wrote; the net comes with
// its weights. See tx_net_from_torchscript: such files hold programs.
func (d *Device) NetFromTorchScript(ctx context.Context, file []byte, spec ScriptSpec) (*Net, error) {
	const op = "net-from-torchscript"
	if len(file) == 0 {
		return nil, invalidf(op, "%s is empty: want a file that torch.jit.save wrote", spec.Name)
	}
	text, err := json.Marshal(spec)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	n := &Net{d: d}
	err = d.do(ctx, op, func() error {
		c, free := cString(string(text))
		defer free()
		var p *C.tx_net
		if err := failure(C.tx_net_from_torchscript(unsafe.Pointer(unsafe.SliceData(file)), C.size_t(len(file)), c, &p)); err != nil {
			return err
		}
		runtime.KeepAlive(file)
		n.h = newHandle(unsafe.Pointer(p), func(p unsafe.Pointer) { C.tx_net_free((*C.tx_net)(p)) })
		return nil
	})
	if err != nil {
		return nil, err
	}
	return n, nil
}
