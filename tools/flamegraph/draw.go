package main

import (
	"fmt"
	"html"
	"path"
	"strings"
)

// Sizes in pixels.
const (
	width     = 1400.0
	rowHeight = 16
	leastWide = 0.4 // narrower boxes are omitted
	letter    = 6.6 // the average width of a letter
)

// draw returns the flame graph of stacks, with callees above their callers.
func draw(title string, stacks []stack) []byte {
	root := tree(stacks)
	total := float64(max(root.value, 1))
	var boxes strings.Builder
	depth := 0
	var put func(n *node, x float64, row int)
	put = func(n *node, x float64, row int) {
		w := float64(n.value) / total * width
		if w < leastWide {
			return
		}
		depth = max(depth, row)
		text := short(n.name)
		if room := int((w - 4) / letter); len(text) > room {
			text = text[:max(room, 0)]
		}
		fmt.Fprintf(&boxes, "<g><title>%s (%.2f %%)</title><rect x=\"%.1f\" y=\"{%d}\" width=\"%.1f\" height=\"%d\" fill=\"%s\"/><text x=\"%.1f\" y=\"{%d}\" dy=\"12\">%s</text></g>\n",
			html.EscapeString(n.name), float64(n.value)/total*100, x, row, w, rowHeight-1, color(n.name), x+2, row, html.EscapeString(text))
		for _, c := range n.sorted() {
			put(c, x, row+1)
			x += float64(c.value) / total * width
		}
	}
	put(root, 0, 0)
	height := (depth + 2) * rowHeight
	var rows []string
	for row := range depth + 1 {
		rows = append(rows, fmt.Sprintf("{%d}", row), fmt.Sprint(height-(row+1)*rowHeight))
	}
	return fmt.Appendf(nil, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" font-family=\"monospace\" font-size=\"11\">\n<text x=\"2\" y=\"12\">%s: processor time; the width is the share</text>\n%s</svg>\n",
		int(width), height, html.EscapeString(title), strings.NewReplacer(rows...).Replace(boxes.String()))
}

// short is a function's name without the path of its package.
func short(name string) string {
	plain, _, generic := strings.Cut(name, "[")
	if generic {
		return path.Base(plain) + "[…]"
	}
	return path.Base(plain)
}

// color is by whose function it is.
func color(name string) string {
	switch {
	case strings.HasPrefix(name, "github.com/contextd/"):
		return "#f2a65a"
	case strings.HasPrefix(name, "github.com/cockroachdb/"):
		return "#8fbf7f"
	case strings.HasPrefix(name, "google.golang.org/"):
		return "#8db7d9"
	case strings.HasPrefix(name, "runtime."), strings.HasPrefix(name, "runtime/"), strings.HasPrefix(name, "internal/runtime"):
		return "#d9d0c3"
	default:
		return "#e8cf7a"
	}
}
