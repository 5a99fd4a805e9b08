package weights

import (
	"encoding/binary"
	"encoding/json"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/assay-xai/assay/internal/usage"
)

// namesCase is a state dict whose names differ from its net's, and where
// torchvision put its tensors (scripts/golden_names.py).
type namesCase struct {
	Name     string
	Counters []string
	Rows     [][3]any // name in the file, name in the net or nil, shape
}

func namesCases(t *testing.T) []namesCase {
	text, err := os.ReadFile("testdata/names.json")
	require.NoError(t, err)
	var golden struct{ Cases []namesCase }
	require.NoError(t, json.Unmarshal(text, &golden))
	require.Len(t, golden.Cases, 4)
	return golden.Cases
}

// make returns the file, whose tensors hold their number (once, whatever their
// shape: names are what this is about), the net's parameters, and which number
// each of them has to get.
func (c namesCase) make() (sd *StateDict, net []Parameter, want map[string]int) {
	sd, want = &StateDict{Tensors: map[string]Tensor{}}, map[string]int{}
	for i, row := range c.Rows {
		var shape []int64
		for _, n := range row[2].([]any) {
			shape = append(shape, int64(n.(float64)))
		}
		name := row[0].(string)
		sd.Names = append(sd.Names, name)
		sd.Tensors[name] = Tensor{DType: "f32", Shape: shape, Data: binary.LittleEndian.AppendUint32(nil, uint32(i))}
		if own, ok := row[1].(string); ok {
			net = append(net, Parameter{Name: own, Shape: shape})
			want[own] = i
		}
	}
	for _, name := range c.Counters {
		net = append(net, Parameter{Name: name, Shape: []int64{}, Buffer: true})
	}
	return sd, net, want
}

func TestMatchPutsTensorsWhereTorchvisionDoes(t *testing.T) {
	for _, c := range namesCases(t) {
		t.Run(c.Name, func(t *testing.T) {
			sd, net, want := c.make()
			found, warnings, err := Match(sd, net)
			require.NoError(t, err)
			got := map[string]int{}
			for name, tensor := range found {
				got[name] = int(binary.LittleEndian.Uint32(tensor.Data))
			}
			require.Equal(t, want, got)
			if spare := len(c.Rows) - len(want); spare > 0 {
				require.Len(t, warnings, 1)
				require.Contains(t, warnings[0], "auxiliary heads")
				require.NotContains(t, warnings[0], "\n")
			} else {
				require.Empty(t, warnings)
			}
		})
	}
}

// One name too many or too few, or one size: refused, whatever else is allowed.
func TestMatchIsStrictBesidesItsAllowances(t *testing.T) {
	for _, c := range namesCases(t) {
		t.Run(c.Name, func(t *testing.T) {
			sd, net, want := c.make()
			without := func(name string) *StateDict {
				tensors := maps.Clone(sd.Tensors)
				delete(tensors, name)
				return &StateDict{Names: slices.DeleteFunc(slices.Clone(sd.Names), func(n string) bool { return n == name }), Tensors: tensors}
			}
			refused := func(changed *StateDict, says string) {
				t.Helper()
				_, _, err := Match(changed, net)
				require.ErrorIs(t, err, usage.Err)
				require.ErrorContains(t, err, says)
			}
			for i, row := range c.Rows {
				own, needed := row[1].(string)
				if i%7 != 0 && needed && own == row[0] {
					continue // every seventh of the ordinary names does
				}
				name := row[0].(string)
				changed := without(name)
				if needed {
					refused(changed, "1 of the net's "+strconv.Itoa(len(net))+" missing ("+own+")")
				} else {
					_, _, err := Match(changed, net) // an auxiliary head may lack anything
					require.NoError(t, err)
				}
				changed.Names = append(changed.Names, "x"+name)
				changed.Tensors["x"+name] = sd.Tensors[name]
				refused(changed, "not in the net (x"+name+")")
				if needed {
					changed = without("")
					tensor := changed.Tensors[name]
					tensor.Shape = append([]int64{1}, tensor.Shape...)
					changed.Tensors[name] = tensor
					refused(changed, "1 of another shape ("+own)
				}
			}
			require.NotEmpty(t, want)
		})
	}
}

// The same through a file: DataParallel's prefix before the old spelling.
func TestOpenAndMatchOldNamesWithPrefix(t *testing.T) {
	for _, c := range namesCases(t)[:2] {
		t.Run(c.Name, func(t *testing.T) {
			sd, net, want := c.make()
			tensors := map[string]Tensor{}
			for name, tensor := range sd.Tensors {
				n, err := byteCount("f32", tensor.Shape)
				require.NoError(t, err)
				number := math.Float32bits(float32(binary.LittleEndian.Uint32(tensor.Data)))
				tensor.Data = nil
				for range n / 4 {
					tensor.Data = binary.LittleEndian.AppendUint32(tensor.Data, number)
				}
				tensors["module."+name] = tensor
			}
			path := filepath.Join(t.TempDir(), "old.safetensors")
			require.NoError(t, WriteSafetensors(path, tensors, nil))
			sd, err := Open(path)
			require.NoError(t, err)
			require.False(t, strings.HasPrefix(sd.Names[0], "module."))
			found, warnings, err := Match(sd, net)
			require.NoError(t, err)
			require.Empty(t, warnings)
			require.Len(t, found, len(want))
			for name, i := range want {
				require.Equal(t, float32(i), math.Float32frombits(binary.LittleEndian.Uint32(found[name].Data)), name)
			}
		})
	}
}
