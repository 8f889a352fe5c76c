package ledger

import "github.com/contextd/contextd/internal/budget"

// use counts the argument values of a tool's calls, to find those that most calls share.
type use struct {
	calls  int
	names  []string                  // of arguments, in the order in which they first came
	values map[string]map[string]int // name → value → how many calls have it
	// usual are the shared arguments of the first seen calls, and piece the line that lists them.
	usual usual
	piece budget.Piece
	seen  int
}

func newUse() use { return use{values: map[string]map[string]int{}} }

// add counts the arguments of a call.
func (u *use) add(members []Member) {
	const longest, most = 400, 32 // bytes of a value, values of a name
	if members == nil {
		return
	}
	u.calls++
	for _, m := range members {
		if len(m.value) > longest {
			continue
		}
		of := u.values[m.name]
		if of == nil {
			of = map[string]int{}
			u.values[m.name] = of
			u.names = append(u.names, m.name)
		}
		if _, ok := of[m.value]; ok || len(of) < most {
			of[m.value]++
		}
	}
}

// settle finds the usual arguments: those that at least three calls, and six of ten, have.
func (u *use) settle(tool string, gauge budget.Gauge) {
	if u.seen == u.calls {
		return
	}
	u.seen, u.usual, u.piece = u.calls, nil, budget.Piece{}
	for _, name := range u.names {
		for value, n := range u.values[name] {
			if n >= 3 && n*10 >= u.calls*6 { // at most one value can
				u.usual = append(u.usual, Member{name, value})
			}
		}
	}
	if len(u.usual) > 0 {
		u.piece = gauge.Piece(tool + ", unless a line says otherwise: " + u.usual.String() + "\n")
	}
}

// useOf returns the use of a line's tool.
func (c *Calls) useOf(l *line) *use {
	u := &c.uses[l.number]
	u.settle(l.tool, c.gauge)
	return u
}

// usual returns for each tool of some lines a line with what most of its calls have in common.
func (c *Calls) usual(lines []shownLine) []budget.Piece {
	var out []budget.Piece
	said := make([]bool, len(c.uses))
	for i := range lines {
		if l := lines[i].line; !said[l.number] && l.members != nil {
			said[l.number] = true
			if u := c.useOf(l); u.piece.Text != "" {
				out = append(out, u.piece)
			}
		}
	}
	return out
}

// inShort returns a line with its arguments in short.
func (c *Calls) inShort(l *line) shownLine {
	if l.members == nil {
		return c.measure(l, &l.cost, l.arguments)
	}
	u := c.useOf(l)
	if l.short == "" || l.beside != u.piece.Text {
		l.beside, l.long, l.cost, l.detailCost = u.piece.Text, "", 0, 0
		l.short = u.usual.shownWith(l.members, argumentBytes, allBytes)
	}
	return c.measure(l, &l.cost, l.short)
}

// inDetail returns a line with its arguments in detail, if there are more.
func (c *Calls) inDetail(shown shownLine) shownLine {
	l := shown.line
	switch {
	case l.members == nil && l.detail == "":
		return shown
	case l.members == nil:
		return c.measure(l, &l.detailCost, l.detail)
	case l.long == "":
		l.long = c.useOf(l).usual.shownWith(l.members, detailArgumentBytes, detailBytes)
	}
	return c.measure(l, &l.detailCost, l.long)
}
