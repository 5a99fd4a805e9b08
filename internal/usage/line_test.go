package usage

import (
	"errors"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestLine(t *testing.T) {
	require.NoError(t, Line(nil, "x"))
	for text, want := range map[string]string{
		"plain é": "plain é", "a\nb\r": "a; b;", "\x1b[31m\x00": `\x1b[31m\x00`, "bad \xff": `bad \xff`, "\u202e": `\u202e`, "": "",
	} {
		require.Equal(t, want, Line(errors.New(text), "").Error())
	}
	long := strings.Repeat("é", 1000)
	got := Line(errors.New("begins "+long+" ends"), "").Error()
	require.LessOrEqual(t, len(got), 280)
	require.True(t, utf8.ValidString(got))
	require.Regexp(t, `^begins .* \.\.\. .* ends$`, got)

	path := "/" + strings.Repeat("p", 4000)
	got = Line(errors.New("dataset: "+path+": "+long), path).Error()
	require.Contains(t, got, path)
	require.LessOrEqual(t, len(got), len(path)+290)

	require.ErrorIs(t, Line(Errorf("%w", io.EOF), ""), Err)
	require.ErrorIs(t, Line(Errorf("%w", io.EOF), ""), io.EOF)
}

func TestQuote(t *testing.T) {
	require.Equal(t, `"a\n"`, Quote("a\n"))
	require.LessOrEqual(t, len(Quote(strings.Repeat("é", 100))), 65)
	require.True(t, utf8.ValidString(Quote(strings.Repeat("é", 100))))
}
