package main

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/contextd/contextd/internal/evaluate"
)

// table has the results.
type table struct {
	target   uint64
	sessions int
	rows     map[string]*row
}

// row has the results of one library, or of contextd.
type row struct {
	figures  evaluate.Figures
	orphaned int               // contexts that a provider would refuse
	seconds  map[int][]float64 // per turn, by the number of messages in the session
}

func (t *table) row(name string) *row {
	if t.rows[name] == nil {
		t.rows[name] = &row{seconds: map[int][]float64{}}
	}
	return t.rows[name]
}

func (r *row) add(f evaluate.Figures) { r.figures.Add(f) }

// median is the median time of a turn in sessions of a size; ok is false if there is none.
func (r *row) median(size int) (seconds float64, ok bool) {
	all := slices.Sorted(slices.Values(r.seconds[size]))
	if len(all) == 0 {
		return 0, false
	}
	return all[len(all)/2], true
}

// names lists the rows, contextd's first.
func (t *table) names() []string {
	return slices.SortedFunc(maps.Keys(t.rows), func(a, b string) int {
		rank := func(name string) int {
			switch {
			case strings.HasPrefix(name, "contextd"):
				return 0
			case name == "everything":
				return 1
			default:
				return 2
			}
		}
		if d := rank(a) - rank(b); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
}

// write prints both tables as Markdown.
func (t *table) write(out io.Writer) {
	all := t.rows["everything"].figures
	fmt.Fprintf(out, "%d sessions, %d calls, a target of %d tokens:\n\n", t.sessions, all.Steps, t.target)
	fmt.Fprintln(out, "| | cost | prefix changes | over the target | refused by a provider | calls visible | evidence | edits |")
	fmt.Fprintln(out, "| --- | --- | --- | --- | --- | --- | --- | --- |")
	for _, name := range t.names() {
		r := t.rows[name]
		f := r.figures
		if f.Steps == 0 {
			continue
		}
		if f.Steps < all.Steps {
			name += fmt.Sprintf(" (%d calls)", f.Steps)
		}
		fmt.Fprintf(out, "| %s | %.2f | %d | %d | %d | %s | %s | %s |\n", name, f.Cost/all.Cost*float64(all.Steps)/float64(f.Steps),
			f.Changes, f.Over+f.Refused, r.orphaned, share(f.Visible, f.Calls), share(f.Evident, f.Wanted), share(f.Shown, f.Lines))
	}
	fmt.Fprintln(out, "\nTime of one turn, the median of ten, in milliseconds:")
	fmt.Fprint(out, "\n| messages |")
	for _, n := range sizes {
		fmt.Fprintf(out, " %d |", n)
	}
	fmt.Fprintf(out, " from %d to %d |\n| --- |%s\n", sizes[1], sizes[2], strings.Repeat(" --- |", len(sizes)+1))
	for _, name := range t.names() {
		r := t.rows[name]
		if len(r.seconds) == 0 {
			continue
		}
		fmt.Fprintf(out, "| %s |", name)
		for _, n := range sizes {
			fmt.Fprintf(out, " %s |", milliseconds(r.median(n)))
		}
		growth := "–"
		if a, ok := r.median(sizes[1]); ok && a > 0 {
			if b, ok := r.median(sizes[2]); ok {
				growth = fmt.Sprintf("%.1f times", b/a)
			}
		}
		fmt.Fprintf(out, " %s |\n", growth)
	}
}

func share(n, of int) string {
	if of == 0 {
		return "–"
	}
	return fmt.Sprintf("%.0f%%", 100*float64(n)/float64(of))
}

func milliseconds(seconds float64, ok bool) string {
	switch ms := seconds * 1000; {
	case !ok:
		return "not done in time"
	case ms < 1:
		return fmt.Sprintf("%.2f", ms)
	case ms < 100:
		return fmt.Sprintf("%.1f", ms)
	default:
		return fmt.Sprintf("%.0f", ms)
	}
}

// plot draws the time of a turn over the number of messages, both on logarithmic scales.
func (t *table) plot() string {
	const (
		width, height          = 860, 420
		left, right, top, base = 70, 530, 20, 370
		fastest, slowest       = -5.0, 2.0 // powers of ten, in seconds
	)
	x := func(n int) float64 {
		a, b := math.Log10(float64(sizes[0])), math.Log10(float64(sizes[len(sizes)-1]))
		return left + (right-left)*(math.Log10(float64(n))-a)/(b-a)
	}
	y := func(seconds float64) float64 {
		at := (math.Log10(max(seconds, 1e-9)) - fastest) / (slowest - fastest)
		return base - (base-top)*min(max(at, 0), 1)
	}
	var out strings.Builder
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", width, height)
	fmt.Fprintf(&out, `<title>Time of one turn by the number of messages</title>`+"\n"+`<rect width="%d" height="%d" fill="#fff"/>`+"\n", width, height)
	for i, label := range []string{"10 µs", "0.1 ms", "1 ms", "10 ms", "0.1 s", "1 s", "10 s", "100 s"} {
		at := y(math.Pow(10, fastest+float64(i)))
		fmt.Fprintf(&out, `<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n", left, right, at, at, left-8, at+4, label)
	}
	for _, n := range sizes {
		fmt.Fprintf(&out, `<text x="%.1f" y="%d" text-anchor="middle">%d</text>`+"\n", x(n), base+20, n)
	}
	fmt.Fprintf(&out, `<text x="%d" y="%d" text-anchor="middle">messages in the session</text>`+"\n", (left+right)/2, base+40)
	colours := []string{"#000000", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f", "#8c564b"}
	type end struct {
		x, y         float64
		name, colour string
	}
	var ends []end
	for _, name := range t.names() {
		r := t.rows[name]
		var points []string
		e := end{name: name, colour: colours[len(ends)%len(colours)]}
		for _, n := range sizes {
			if s, ok := r.median(n); ok {
				e.x, e.y = x(n), y(s)
				points = append(points, fmt.Sprintf("%.1f,%.1f", e.x, e.y))
				fmt.Fprintf(&out, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`+"\n", e.x, e.y, e.colour)
			}
		}
		if len(points) == 0 {
			continue
		}
		thick, dash := 2, ""
		if strings.HasPrefix(name, "contextd") {
			thick = 4
		} else if len(ends)%2 == 0 {
			dash = ` stroke-dasharray="6 4"`
		}
		fmt.Fprintf(&out, `<polyline points="%s" fill="none" stroke="%s" stroke-width="%d"%s/>`+"\n", strings.Join(points, " "), e.colour, thick, dash)
		ends = append(ends, e)
	}
	// Keep the labels apart, in the order of the lines.
	slices.SortFunc(ends, func(a, b end) int { return int(a.y - b.y) })
	free := 0.0
	for _, e := range ends {
		free = max(free+16, e.y)
		fmt.Fprintf(&out, `<line x1="%.1f" x2="%d" y1="%.1f" y2="%.1f" stroke="%s" stroke-width="0.5"/><text x="%d" y="%.1f" fill="%s">%s</text>`+"\n",
			e.x, right+14, e.y, free, e.colour, right+18, free+4, e.colour, strings.ReplaceAll(e.name, "`", ""))
	}
	return out.String() + "</svg>\n"
}
