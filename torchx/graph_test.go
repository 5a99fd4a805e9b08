package torchx

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A net file: y = W relu(x), two columns to three classes.
const graph = `{"format":"assay-net","version":1,"name":"tiny","input":[2],"preset":"table",
	"parameters":[{"name":"fc.weight","shape":[3,2]}],
	"ops":[{"op":"relu","name":"relu","inputs":["input"]},
	       {"op":"linear","name":"fc","inputs":["relu"],"channels":3,"bias":false,"parameters":["fc.weight"]}],
	"output":"fc"}`

func TestNetOfAGraph(t *testing.T) {
	ctx := context.Background()
	d := cpu(t)
	text, err := json.Marshal(graph)
	require.NoError(t, err)
	for _, spec := range []json.RawMessage{json.RawMessage(graph), text} {
		n, err := d.NewNet(ctx, NetSpec{Graph: spec})
		require.NoError(t, err)
		defer n.Close()
		said, err := n.Describe()
		require.NoError(t, err)
		require.JSONEq(t, `{"net":"tiny","preset":"table","input":[2],"classes":3,"parameterCount":6,"defaultLayer":"","blackBox":false,"reason":"",
			"parameters":[{"name":"fc.weight","shape":[3,2],"buffer":false,"optional":false}],
			"layers":[{"name":"relu","op":"relu","outputs":[2]},{"name":"fc","op":"linear","outputs":[3]}]}`, string(said))

		weight, err := NewFloats([]int64{3, 2}, []float32{1, 2, 3, 4, 5, 6})
		require.NoError(t, err)
		defer weight.Close()
		x, err := NewFloats([]int64{2, 2}, []float32{1, -1, 2, .5})
		require.NoError(t, err)
		defer x.Close()
		require.NoError(t, n.Load(ctx, map[string]*Tensor{"fc.weight": weight}))
		require.NoError(t, n.Prepare(ctx, PrecisionF32))
		y, err := n.Forward(ctx, x, 0)
		require.NoError(t, err)
		defer y.Close()
		got, err := y.Floats()
		require.NoError(t, err)
		// Small integers and halves: exact.
		require.Equal(t, []float32{1, 3, 5, 3, 8, 13}, got)
	}
}

func TestGraphErrors(t *testing.T) {
	d := cpu(t)
	for _, c := range []struct {
		spec NetSpec
		says string
	}{
		{NetSpec{Graph: json.RawMessage(strings.Replace(graph, `"relu"`, `"rleu"`, 1))}, `net file: op relu: "op": "rleu": want one of conv2d`},
		{NetSpec{Graph: json.RawMessage(`"{"`)}, "net file: parse error at line 1"},
		{NetSpec{Graph: json.RawMessage(`{"format":"assay-net","format":1}`)}, `spec: the key "format" comes twice`},
		{NetSpec{Graph: json.RawMessage(graph), Net: "mlp"}, `net beside "graph"`},
		{NetSpec{Graph: json.RawMessage(graph), Classes: 3}, `classes beside "graph"`},
		{NetSpec{}, `want {"net": id, ...} or {"graph": net file}`},
	} {
		_, err := d.NewNet(context.Background(), c.spec)
		require.ErrorIs(t, err, ErrInvalid)
		require.Contains(t, err.Error(), c.says)
	}
}
