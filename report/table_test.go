package report

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func ExampleTable() {
	Table(os.Stdout, []string{"image", "value", "note"}, [][]string{
		{"chelsea.png", "21.16", "found"},
		{"a.png", "-9.1", ""},
	})
	// Output:
	// image        value  note
	// -----------  -----  -----
	// chelsea.png  21.16  found
	// a.png         -9.1
}

func TestTableEscapesControlCharacters(t *testing.T) {
	var b strings.Builder
	require.NoError(t, Table(&b, []string{"a", "b"}, [][]string{{"x\x1b[2J\n", "é"}, {"", "äöü"}}))
	require.Equal(t, "a           b\n----------  ---\nx\\x1b[2J\\n  é\n            äöü\n", b.String())
	require.NoError(t, Table(&b, nil, nil))
	require.ErrorContains(t, Table(&b, []string{"a"}, [][]string{{"1", "2"}}), "row 1 of a table has 2 cells")
	require.ErrorContains(t, Table(full{}, []string{"a"}, nil), "disk full")
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestFormats(t *testing.T) {
	require.Equal(t, "1234", grouped(1234))
	require.Equal(t, "12\u202f345", grouped(12345))
	require.Equal(t, "−1\u202f234\u202f567", grouped(-1234567))
	require.Equal(t, "0.00", decimal(-.001, 2))
	require.Equal(t, "−0.01", decimal(-.01, 2))
	for v, want := range map[float64]string{.0042: "4.2 ms", .5: "500 ms", 12.34: "12.3 s", 75: "75.0 s", 135.4: "2 min 15 s", 7260: "2 h 01 min", -1: "–"} {
		require.Equal(t, want, seconds(v))
	}
	require.Equal(t, "<\u202f0.1\u202f%", probability(1e-9))
	require.Equal(t, ">\u202f99.9\u202f%", probability(.99999))
	require.Equal(t, "0.0\u202f%", probability(0))
	require.Equal(t, "38.4\u202f%", probability(.384))
	require.Equal(t, "a, b and c", list([]string{"a", "b", "c"}))
	require.Negative(t, naturalCompare("img9.png", "img10.png"))
	require.Positive(t, naturalCompare("img10.png", "img9.png"))
	require.Negative(t, naturalCompare("a", "b"))
	require.NotZero(t, naturalCompare("a01", "a1"))
	require.Zero(t, naturalCompare("x", "x"))
}

func TestNiceTicks(t *testing.T) {
	require.InDeltaSlice(t, []float64{0, .2, .4, .6, .8, 1}, niceTicks(0, 1, 5), 1e-12)
	require.InDeltaSlice(t, []float64{-10, -5, 0, 5}, niceTicks(-12, 8, 5), 1e-12)
	require.Equal(t, []float64{3}, niceTicks(3, 3, 5))
}
