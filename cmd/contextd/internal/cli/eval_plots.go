package cli

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/contextd/contextd/cmd/contextd/internal/page"
	"github.com/contextd/contextd/internal/evaluate"
)

// plot is the area of a diagram in SVG units, and the values at its edges.
type plot struct {
	width, height            float64
	left, right, top, bottom float64 // margins
	fromX, toX, fromY, toY   float64
}

func (a plot) x(v float64) float64 {
	return a.left + (v-a.fromX)/max(a.toX-a.fromX, 1e-9)*(a.width-a.left-a.right)
}

func (a plot) y(v float64) float64 {
	return a.height - a.bottom - (v-a.fromY)/max(a.toY-a.fromY, 1e-9)*(a.height-a.top-a.bottom)
}

// ticks are round values between from and to, about n of them.
func ticks(from, to float64, n int) []float64 {
	if to <= from {
		return nil
	}
	step := math.Pow(10, math.Floor(math.Log10((to-from)/float64(n))))
	for _, m := range []float64{1, 2, 2.5, 5, 10} {
		if (to-from)/(step*m) <= float64(n) {
			step *= m
			break
		}
	}
	var out []float64
	for v := math.Ceil(from/step) * step; v <= to+step/1e6; v += step {
		out = append(out, v)
	}
	return out
}

// label is a text next to a point.
type label struct {
	x, y   float64
	policy int
	text   string
	at     float64 // its y after apart
}

// apart moves labels so that none overlaps another, and returns them from top to bottom.
func apart(labels []label, least, top, bottom float64) []label {
	slices.SortStableFunc(labels, func(a, b label) int { return int(math.Copysign(1, a.y-b.y)) })
	at := top
	for i := range labels {
		labels[i].at = max(labels[i].y, at)
		at = labels[i].at + least
	}
	at = bottom
	for i := len(labels) - 1; i >= 0; i-- {
		labels[i].at = min(labels[i].at, at)
		at = labels[i].at - least
	}
	return labels
}

// label writes a label, with a line to it from its point.
func (p *evalPage) label(l label, from, at float64) {
	p.Rawf(`<path class="leader" fill="none" d="M%.1f %.1f L%.1f %.1f"/><circle class="f%d" cx="%.1f" cy="%.1f" r="3.5"/><text x="%.1f" y="%.1f">%s</text>`,
		from, l.y, at-2, l.at, colour(l.policy), at+2, l.at, at+11, l.at+4, page.Escape(l.text))
}

func (p *evalPage) axes(a plot, x, y []float64, xText, yText func(float64) string) {
	for _, v := range y {
		p.Rawf(`<line class="grid" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/><text class="axis" x="%.1f" y="%.1f" text-anchor="end">%s</text>`,
			a.left, a.width-a.right, a.y(v), a.y(v), a.left-7, a.y(v)+4, page.Escape(yText(v)))
	}
	for _, v := range x {
		anchor := "middle"
		if a.x(v) > a.width-a.right-1 && a.right < 20 {
			anchor = "end" // else the edge cuts it off
		}
		p.Rawf(`<text class="axis" x="%.1f" y="%.1f" text-anchor="%s">%s</text>`, a.x(v), a.height-a.bottom+16, anchor, page.Escape(xText(v)))
	}
	p.Rawf(`<line class="base" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/>`, a.left, a.width-a.right, a.height-a.bottom, a.height-a.bottom)
}

// front plots the evidence that each policy keeps over its cost.
func (p *evalPage) front() {
	var rows []int
	a := plot{width: 1000, height: 420, left: 52, right: 250, top: 18, bottom: 44, toX: 1, fromY: 1, toY: 1}
	for i, r := range p.report.Policies {
		if r.Cost == nil || r.Evidence == nil {
			continue
		}
		rows = append(rows, i)
		a.toX, a.fromY = max(a.toX, *r.Cost), min(a.fromY, *r.Evidence)
	}
	if len(rows) == 0 {
		return
	}
	a.toX *= 1.04
	a.fromY = max(0, math.Floor((a.fromY-0.02)*20)/20)
	p.Raw("<h2>Cost against evidence</h2>\n" + `<p class="soft small">Up and to the left is better. A hollow mark is a policy that would have been over the window or refused in some calls. ` +
		`The dotted line joins those that always fit and than which none is both cheaper and better.</p>` + "\n")
	p.Rawf(`<svg viewBox="0 0 %.0f %.0f" role="img" aria-label="Cost against evidence of each policy">`, a.width, a.height)
	p.axes(a, ticks(0, a.toX, 8), ticks(a.fromY, 1, 6), func(v float64) string { return fmt.Sprintf("%.1f", v) }, func(v float64) string { return fmt.Sprintf("%.0f%%", v*100) })
	p.Rawf(`<text class="axis" x="%.1f" y="%.1f" text-anchor="middle">cost, relative to everything</text>`, (a.left+a.width-a.right)/2, a.height-8)
	p.frontLine(a, rows)
	var labels []label
	for _, i := range rows {
		r := p.report.Policies[i]
		x, y := a.x(*r.Cost), a.y(*r.Evidence)
		class, text := fmt.Sprintf("f%d s%d", colour(i), colour(i)), fmt.Sprintf("%s: cost %.3f, evidence %.3f", r.Policy, *r.Cost, *r.Evidence)
		if r.OverWindow+r.Refused > 0 {
			class = fmt.Sprintf("hollow s%d", colour(i))
			text += fmt.Sprintf(", %d over the window, %d refused", r.OverWindow, r.Refused)
		}
		p.Rawf(`<circle class="%s" cx="%.1f" cy="%.1f" r="6" stroke-width="2"><title>%s</title></circle>`, class, x, y, page.Escape(text))
		labels = append(labels, label{x: x, y: y, policy: i, text: r.Policy})
	}
	right := a.width - a.right + 14
	for _, l := range apart(labels, 18, a.top+6, a.height-a.bottom) {
		p.label(l, l.x+8, right)
	}
	p.Raw("</svg>\n")
}

// frontLine is the Pareto front: it joins the policies that always fit the window and of which no other is at
// least as good in both cost and evidence and better in one.
func (p *evalPage) frontLine(a plot, rows []int) {
	var best []int
	for _, i := range rows {
		r := p.report.Policies[i]
		beaten := r.OverWindow+r.Refused > 0 || slices.ContainsFunc(rows, func(k int) bool {
			o := p.report.Policies[k]
			return o.OverWindow+o.Refused == 0 && *o.Cost <= *r.Cost && *o.Evidence >= *r.Evidence && (*o.Cost < *r.Cost || *o.Evidence > *r.Evidence)
		})
		if !beaten {
			best = append(best, i)
		}
	}
	slices.SortFunc(best, func(x, y int) int {
		return int(math.Copysign(1, *p.report.Policies[x].Cost-*p.report.Policies[y].Cost))
	})
	var line []string
	for _, i := range best {
		line = append(line, fmt.Sprintf("%.1f,%.1f", a.x(*p.report.Policies[i].Cost), a.y(*p.report.Policies[i].Evidence)))
	}
	p.Rawf(`<polyline class="front" points="%s"/>`, strings.Join(line, " "))
}

// days plots the money or tokens spent per policy over time.
func (p *evalPage) days() {
	days := p.report.Days
	if len(days) < 2 {
		return
	}
	dollars := p.report.Priced > 0
	sums := make([][]float64, len(p.report.Policies))
	a := plot{width: 1000, height: 340, left: 64, right: 280, top: 14, bottom: 32, toX: float64(len(days) - 1)}
	for i := range sums {
		total := 0.0
		for _, d := range days {
			switch {
			case !dollars:
				total += d.Spent[i]
			case d.USD[i] != nil:
				total += *d.USD[i]
			}
			sums[i] = append(sums[i], total)
		}
		a.toY = max(a.toY, total)
	}
	text := func(v float64) string { return thousands(uint64(v)) }
	p.Raw("<h2>Cost over time</h2>\n")
	if dollars {
		text = func(v float64) string {
			if v == 0 {
				return "$0"
			}
			return "$" + evalUSD(&v)
		}
		p.In("p", "soft small", "The sum in US dollars, by the days of the transcripts that have times and a known price.")
	} else {
		p.In("p", "soft small", "The sum in new tokens of the prompt, by the days of the transcripts that have times: the price of no model is known.")
	}
	p.Rawf(`<svg viewBox="0 0 %.0f %.0f" role="img" aria-label="Cost over time of each policy">`, a.width, a.height)
	var x []float64
	for _, v := range ticks(0, a.toX, 5) {
		if v == math.Trunc(v) {
			x = append(x, v)
		}
	}
	p.axes(a, x, ticks(0, a.toY, 5), func(v float64) string { return days[int(v)].Day }, text)
	var labels []label
	for i, line := range sums {
		var points []string
		for k, v := range line {
			points = append(points, fmt.Sprintf("%.1f,%.1f", a.x(float64(k)), a.y(v)))
		}
		name := p.report.Policies[i].Policy
		p.Rawf(`<polyline class="path s%d" points="%s"><title>%s</title></polyline>`, colour(i), strings.Join(points, " "), page.Escape(name))
		last := line[len(line)-1]
		labels = append(labels, label{x: a.x(a.toX), y: a.y(last), policy: i, text: name + " " + text(last)})
	}
	for _, l := range apart(labels, 17, a.top+4, a.height-a.bottom) {
		p.label(l, l.x+2, l.x+18)
	}
	p.Raw("</svg>\n")
}

// trail plots the size of one policy's contexts over one session.
func (p *evalPage) trail(s evaluate.SessionReport, policy int, top uint64) {
	t, row := s.Trails[policy], s.Rows[policy]
	p.Raw(`<div class="card">`).In("h4", "", t.Policy)
	p.In("p", "", fmt.Sprintf("cost %s · evidence %s · %s", evalShare(row.Cost), percent(row.Evidence), counted(row.PrefixChanges, "prefix change")))
	a := plot{width: 320, height: 130, left: 38, right: 6, top: 8, bottom: 22, fromX: 1, toX: float64(max(s.Calls, 2)), toY: float64(top) * 1.03}
	p.Rawf(`<svg viewBox="0 0 %.0f %.0f" role="img" aria-label="%s">`, a.width, a.height, page.Escape("Tokens over calls, "+t.Policy))
	p.axes(a, []float64{1, a.toX}, ticks(0, a.toY, 3), func(v float64) string { return fmt.Sprint(int(v)) }, func(v float64) string { return thousands(uint64(v)) })
	p.band(a, t.Points, fmt.Sprintf("sent f%d", colour(policy)), func(q evaluate.TrailPoint) (uint64, uint64) { return 0, q.Tokens })
	p.band(a, t.Points, fmt.Sprintf("fresh f%d", colour(policy)), func(q evaluate.TrailPoint) (uint64, uint64) { return q.Cached, q.Tokens })
	if i := p.everything(); i >= 0 && i != policy {
		var line []string
		for _, q := range s.Trails[i].Points {
			line = append(line, fmt.Sprintf("%.1f,%.1f", a.x(float64(q.Call)), a.y(float64(q.Tokens))))
		}
		p.Rawf(`<polyline class="all" points="%s"/>`, strings.Join(line, " "))
	}
	p.Rawf(`<line class="limit" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/>`, a.left, a.width-a.right, a.y(float64(s.Window)), a.y(float64(s.Window)))
	for _, c := range t.Changes {
		x := a.x(float64(c.Call))
		p.Rawf(`<line class="tick" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"><title>%s</title></line>`, x, x, a.height-a.bottom-5, a.height-a.bottom+3,
			page.Escape(fmt.Sprintf("call %d: %s, %d to %d tokens", c.Call, causeText(c.Cause), c.Before, c.After)))
	}
	p.Raw("</svg></div>\n")
}

// band fills the area between two values of each point.
func (p *evalPage) band(a plot, points []evaluate.TrailPoint, class string, of func(evaluate.TrailPoint) (from, to uint64)) {
	if len(points) == 0 {
		return
	}
	var up, down []string
	for _, q := range points {
		from, to := of(q)
		up = append(up, fmt.Sprintf("%.1f,%.1f", a.x(float64(q.Call)), a.y(float64(to))))
		down = append(down, fmt.Sprintf("%.1f,%.1f", a.x(float64(q.Call)), a.y(float64(from))))
	}
	slices.Reverse(down)
	p.Rawf(`<polygon class="%s" points="%s"/>`, class, strings.Join(append(up, down...), " "))
}
