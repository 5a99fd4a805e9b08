package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The events are shortened from what go 1.26 prints.
func TestSummarise(t *testing.T) {
	tests := []struct {
		name   string
		events string
		want   counts
		shown  []string
		hidden []string
	}{
		{
			name: "passes are counted once, subtests are not",
			events: `{"Action":"output","Package":"p","Test":"TestA","Output":"noise\n"}
{"Action":"pass","Package":"p","Test":"TestA/one"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"pass","Package":"p","Elapsed":0.25}
`,
			want: counts{passed: 1}, shown: []string{"ok   p 0.2s"}, hidden: []string{"noise"},
		},
		{
			name: "a failure shows its output, its subtests' too",
			events: `{"Action":"output","Package":"p","Test":"TestA/one","Output":"want 1, got 2\n"}
{"Action":"fail","Package":"p","Test":"TestA/one"}
{"Action":"fail","Package":"p","Test":"TestA"}
{"Action":"fail","Package":"p","Elapsed":1}
`,
			want: counts{failed: 1}, shown: []string{"want 1, got 2", "FAIL p"},
		},
		{
			name: "a skip shows its reason",
			events: `{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:9: SKIP: no data\n"}
{"Action":"skip","Package":"p","Test":"TestA"}
`,
			want: counts{skipped: 1}, shown: []string{"SKIP: no data"}, hidden: []string{"=== RUN"},
		},
		{
			name: "a package that does not compile is a failure",
			events: `{"ImportPath":"p","Action":"build-output","Output":"a.go:1: undefined: x\n"}
{"ImportPath":"p","Action":"build-fail"}
{"Action":"output","Package":"p","Output":"FAIL\tp [build failed]\n"}
{"Action":"fail","Package":"p","Elapsed":0,"FailedBuild":"p"}
`,
			want: counts{failed: 1}, shown: []string{"undefined: x", "[build failed]"},
		},
		{
			name:   "what is no event is passed on, a torn last line too",
			events: "go: cannot find module\n{\"Action\":\"pa",
			want:   counts{}, shown: []string{"go: cannot find module", `{"Action":"pa`},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var out bytes.Buffer
			got, err := summarise(strings.NewReader(test.events), &out)
			require.NoError(t, err)
			require.Equal(t, test.want, got)
			for _, s := range test.shown {
				require.Contains(t, out.String(), s)
			}
			for _, s := range test.hidden {
				require.NotContains(t, out.String(), s)
			}
		})
	}
}
