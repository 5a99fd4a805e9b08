package report

import (
	"encoding/xml"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// node is an element of a page.
type node struct {
	name     string
	attr     map[string]string
	children []*node
	text     string // of itself and all below
}

var raw = regexp.MustCompile(`(?s)<(script|style)>.*?</(script|style)>`)

// parse reads a page; elements that are opened and not closed are errors.
func parse(t *testing.T, page string) *node {
	t.Helper()
	require.Equal(t, 1, strings.Count(page, "<script>"), "one script")
	require.Equal(t, 1, strings.Count(page, "<style>"), "one style")
	page = raw.ReplaceAllString(page, "<$1></$1>")
	d := xml.NewDecoder(strings.NewReader(page))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	root := &node{}
	stack := []*node{root}
	for {
		token, err := d.Token()
		if err == io.EOF {
			require.Len(t, stack, 1, "unclosed: %v", stack[len(stack)-1].name)
			return root
		}
		require.NoError(t, err)
		switch x := token.(type) {
		case xml.StartElement:
			n := &node{name: x.Name.Local, attr: map[string]string{}}
			for _, a := range x.Attr {
				n.attr[a.Name.Local] = a.Value
			}
			top := stack[len(stack)-1]
			top.children = append(top.children, n)
			stack = append(stack, n)
		case xml.EndElement:
			require.Equal(t, stack[len(stack)-1].name, x.Name.Local)
			stack = stack[:len(stack)-1]
		case xml.CharData:
			for _, n := range stack {
				n.text += string(x)
			}
		}
	}
}

// all finds elements by "name", "name.class", ".class" or "#id", in order.
func (n *node) all(selector string) []*node {
	var out []*node
	for _, c := range n.children {
		if c.is(selector) {
			out = append(out, c)
		}
		out = append(out, c.all(selector)...)
	}
	return out
}

func (n *node) is(selector string) bool {
	if id, ok := strings.CutPrefix(selector, "#"); ok {
		return n.attr["id"] == id
	}
	name, class, _ := strings.Cut(selector, ".")
	return (name == "" || n.name == name) && (class == "" || slices.Contains(strings.Fields(n.attr["class"]), class))
}

func (n *node) one(t *testing.T, selector string) *node {
	t.Helper()
	found := n.all(selector)
	require.Len(t, found, 1, selector)
	return found[0]
}

func (n *node) number(t *testing.T, name string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(n.attr[name], 64)
	require.NoError(t, err, name)
	return v
}

// curve inverts the coordinates of a figure's polyline.
func (n *node) curve(t *testing.T, class string) (xs, ys []float64) {
	t.Helper()
	left, right, top, bottom := n.number(t, "data-left"), n.number(t, "data-right"), n.number(t, "data-top"), n.number(t, "data-bottom")
	lo, hi := n.number(t, "data-ymin"), n.number(t, "data-ymax")
	for _, p := range strings.Fields(n.one(t, "polyline."+class).attr["points"]) {
		a, b, ok := strings.Cut(p, ",")
		require.True(t, ok, p)
		x, err := strconv.ParseFloat(a, 64)
		require.NoError(t, err)
		y, err := strconv.ParseFloat(b, 64)
		require.NoError(t, err)
		xs, ys = append(xs, (x-left)/(right-left)), append(ys, lo+(bottom-y)/(bottom-top)*(hi-lo))
	}
	return xs, ys
}
