package dataset

import (
	"bytes"
	"context"
	"encoding/json"
	"image"
	_ "image/jpeg"
	_ "image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEmbeddedPhotos(t *testing.T) {
	set := open(t, "embedded:photos", Options{})
	require.Equal(t, []string{"chelsea.png", "coffee.png", "rocket.jpg"}, ids(set))
	require.Equal(t, []int{-1, -1, -1}, classes(set))
	require.False(t, set.HasLabels)
	// Sizes as testdata/embedded/SOURCES.md lists them.
	for i, want := range []image.Point{{451, 300}, {600, 400}, {640, 427}} {
		b, err := set.Read(context.Background(), i)
		require.NoError(t, err)
		config, _, err := image.DecodeConfig(bytes.NewReader(b))
		require.NoError(t, err)
		require.Equal(t, want, image.Pt(config.Width, config.Height))
	}
	h, err := set.ItemHash(context.Background(), 0)
	require.NoError(t, err)
	require.Equal(t, "596aa1e7cb875eb79f437e310381d26b338a81c2da23439704a73c4651e8c4bb", h, "SOURCES.md")

	labels := writeFile(t, filepath.Join(t.TempDir(), "l"), []byte("chelsea.png 282\ncoffee.png 967\nrocket.jpg 657\n"))
	require.Equal(t, []int{282, 967, 657}, classes(open(t, "embedded:photos", Options{Labels: labels})))
	_, err = Open(context.Background(), "embedded:photo", Options{})
	requireUsage(t, err, "did you mean embedded:photos?")
}

// The tables against what scikit-learn says of them, and their splits: each
// row in one part, a fifth of every class in test, the same at every opening.
func TestEmbeddedTables(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "tables.json"))
	require.NoError(t, err)
	var golden map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(text, &golden))
	for path, name := range map[string]string{
		"embedded:digits": "digits", "embedded:breast-cancer": "breast_cancer", "embedded:iris": "iris", "embedded:wine": "wine",
	} {
		t.Run(name, func(t *testing.T) {
			var want struct {
				Shape, Counts    []int
				Mean, Std, First []float64
				Names, Classes   []string
			}
			require.NoError(t, json.Unmarshal(golden[name], &want))
			train := open(t, path, Options{Split: "train"})
			test := open(t, path, Options{})
			require.Equal(t, "test", test.Split)
			require.Equal(t, []string{"test", "train"}, test.Splits)
			require.Equal(t, want.Classes, test.ClassNames)
			require.Equal(t, want.Shape[0], train.Len()+test.Len())
			require.Equal(t, ids(test), ids(open(t, path, Options{})))

			n := float64(want.Shape[0])
			mean, squares := make([]float64, want.Shape[1]), make([]float64, want.Shape[1])
			trainMean := make([]float64, want.Shape[1])
			seen, counts, tests := map[string]bool{}, make([]int, len(want.Counts)), make([]int, len(want.Counts))
			for _, set := range []*Set{train, test} {
				require.True(t, set.HasLabels)
				for i, item := range set.Items() {
					require.False(t, seen[item.ID])
					seen[item.ID] = true
					counts[item.Class]++
					if set == test {
						tests[item.Class]++
					}
					values, shape, err := set.Values(i)
					require.NoError(t, err)
					if name == "digits" {
						require.Equal(t, []int{1, 8, 8}, shape)
					} else {
						require.Equal(t, want.Shape[1:], shape)
					}
					for k, v := range values {
						mean[k] += float64(v) / n
						squares[k] += float64(v) * float64(v) / n
						if set == train {
							trainMean[k] += float64(v) / float64(train.Len())
						}
						if item.ID == "000000" {
							require.InEpsilon(t, want.First[k]+1, float64(v)+1, 1e-6)
						}
					}
				}
			}
			require.Equal(t, want.Counts, counts)
			for c := range counts {
				require.InDelta(t, float64(counts[c])/5, tests[c], .5)
			}
			for k := range mean {
				require.InDelta(t, want.Mean[k], mean[k], 1e-4*(1+want.Mean[k]), "column %d", k)
				require.InDelta(t, want.Std[k]*want.Std[k], squares[k]-mean[k]*mean[k], 1e-4*(1+want.Mean[k]*want.Mean[k]), "column %d", k)
			}
			if name == "digits" {
				require.Equal(t, Arrays, test.Kind)
				return
			}
			require.Equal(t, Table, test.Kind)
			for k, column := range test.Schema.Columns {
				require.Equal(t, strings.ReplaceAll(want.Names[k], "_", " "), column.Name)
				require.InDelta(t, trainMean[k], column.Mean, 1e-5*(1+trainMean[k]), "the mean of the training rows, in the test set too")
			}
		})
	}
	for _, e := range Embedded() {
		require.NotEmpty(t, e.Summary)
		open(t, e.Path, Options{Limit: 1})
	}
}
