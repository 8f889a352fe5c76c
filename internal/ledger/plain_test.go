package ledger

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/budget/bpe"
	"github.com/contextd/contextd/internal/quote"
)

// These reference implementations write each text that they try and count it, which is simple and slow. The
// package adds up the costs of pieces instead, and must write the same.

type plainLine struct {
	callKey
	detail, pointer string
	times           int
}

func (l plainLine) String() string {
	s := l.tool
	if l.arguments != "" {
		s += " " + l.arguments
	}
	s += " → " + l.outcome.String()
	if l.times > 1 {
		s += fmt.Sprintf(" ×%d", l.times)
	}
	if l.pointer != "" {
		s += " " + l.pointer
	}
	return s + "\n"
}

func plainWrite(calls []Call, limit uint64, count func(string) uint64) string {
	if len(calls) == 0 {
		return ""
	}
	at := map[callKey]int{}
	var lines []plainLine
	for _, c := range slices.Backward(calls) {
		k := callKey{c.Tool, c.Arguments, c.Outcome}
		if j, ok := at[k]; ok {
			lines[j].times++
			continue
		}
		at[k] = len(lines)
		lines = append(lines, plainLine{k, c.Detail, c.Pointer, 1})
	}
	slices.Reverse(lines)
	room := limit/100*detailShare + limit%100*detailShare/100
	for i := len(lines) - 1; i >= 0; i-- {
		l := lines[i]
		l.arguments = cmp.Or(l.detail, l.arguments)
		cost := count(l.String())
		if cost > room {
			break
		}
		room -= cost
		lines[i] = l
	}
	most := min(len(lines), int(min(limit, uint64(len(lines)))))
	full := searchMost(most, func(n int) bool { return count(plainText(lines, n)) <= limit })
	if text := plainText(lines, full); full > 0 || count(text) <= limit {
		return text
	}
	totals := plainTotals(lines)
	slices.SortStableFunc(totals, func(a, b tally) int { return cmp.Compare(b.times(), a.times()) })
	short := func(n int) (text string) {
		rest := tally{tool: "earlier calls"}
		for i, t := range totals {
			if i < n {
				text += t.summary()
				rest.tool = "other tools"
				continue
			}
			for outcome, times := range t.by {
				rest.by[outcome] += times
			}
		}
		return text + rest.summary()
	}
	return short(searchMost(len(totals)-1, func(n int) bool { return count(short(n)) <= limit }))
}

func plainTotals(lines []plainLine) (totals []tally) {
	for _, l := range lines {
		i := slices.IndexFunc(totals, func(t tally) bool { return t.tool == l.tool })
		if i < 0 {
			i = len(totals)
			totals = append(totals, tally{tool: l.tool})
		}
		totals[i].by[l.outcome] += l.times
	}
	return totals
}

func plainText(lines []plainLine, full int) string {
	rest := plainTotals(lines)
	whole := lines[len(lines)-full:]
	for _, t := range plainTotals(whole) {
		i := slices.IndexFunc(rest, func(r tally) bool { return r.tool == t.tool })
		for outcome, n := range t.by {
			rest[i].by[outcome] -= n
		}
	}
	slices.SortStableFunc(rest, func(a, b tally) int { return cmp.Compare(b.times(), a.times()) })
	text := ""
	for _, t := range rest {
		if t.times() > 0 {
			text += t.summary()
		}
	}
	for _, l := range whole {
		text += l.String()
	}
	return text
}

func plainNames(x *Index, limit uint64, beside string, count func(string) uint64) string {
	var names []string
	var bytes uint64
	for _, r := range x.ranking() {
		if bytes/8 > limit {
			break
		}
		if !strings.Contains(beside, r.name) {
			names = append(names, r.name)
			bytes += uint64(len(r.name)) + 1
		}
	}
	n := searchMost(len(names), func(n int) bool { return count(strings.Join(names[:n], " ")) <= limit })
	return strings.Join(names[:n], " ")
}

func plainExcerpts(x *Index, limit uint64, beside string, quote func(string) string, count func(string) uint64) string {
	var picked []string
	shown := map[string]bool{}
	var used, bytes uint64
	for _, r := range x.ranking() {
		if bytes/8 > limit {
			break
		}
		bytes += uint64(len(r.name)) + 1
		cost := count(quote(r.around))
		if r.around == "" || shown[r.name] || strings.Contains(beside, r.name) || used+cost > limit {
			continue
		}
		used += cost
		picked = append(picked, r.around)
		Identifiers(r.around, func(start, end int) bool {
			shown[r.around[start:end]] = true
			return true
		})
	}
	slices.Reverse(picked)
	return quote(strings.Join(picked, "\n"))
}

func plainFiles(f *Files, limit uint64, count func(string) uint64) string {
	text, used := "", uint64(0)
	for _, kind := range []struct {
		title   string
		changed bool
	}{{"Files changed", true}, {"Files read", false}} {
		files := slices.DeleteFunc(slices.Clone(f.files), func(one file) bool { return one.changed != kind.changed })
		slices.SortStableFunc(files, func(a, b file) int { return b.last - a.last })
		names, folder := inFolder(files)
		if folder != "" {
			kind.title += " in " + folder
		}
		line := func(n int) string {
			line := kind.title + ": " + strings.Join(names[:n], ", ")
			if rest := len(names) - n; rest > 0 {
				line += ", and " + strconv.Itoa(rest) + " more"
			}
			return line + "\n"
		}
		room := limit - min(limit, used)
		n := searchMost(len(names), func(n int) bool { return count(line(n)) <= room })
		if line := line(n); n > 0 && count(line) <= room {
			used += count(line)
			text += line
		}
	}
	return text
}

func plainQuote(text string) string {
	if text == "" {
		return ""
	}
	return "> " + strings.ReplaceAll(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text), "\n", "\n> ") + "\n"
}

func TestSumsWriteWhatCountingWrites(t *testing.T) {
	gauges := []budget.Gauge{budget.NewGauge(budget.Heuristic{})}
	for _, name := range bpe.Names() {
		enc, err := bpe.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		gauges = append(gauges, budget.NewGauge(enc))
	}
	tool := rapid.SampledFrom([]string{"read", "write_file", "mcp/tool", "漢字", " odd", "/odd", "", "\n"})
	word := rapid.SampledFrom([]string{"src/a.go", "src/a.go_b", "name_one", "name_two", "HandlerFunc", "12345678", "/usr/bin/env", "prose", " ", "\n", "\r", "\r\n", "é", `"}`})
	rapid.Check(t, func(t *rapid.T) {
		gauge := rapid.SampledFrom(gauges).Draw(t, "gauge")
		x, f, ledger := NewIndex(gauge), NewFiles(gauge), NewCalls(gauge)
		var calls []Call
		for range rapid.IntRange(1, 3).Draw(t, "rounds") { // what was measured is used again
			for range rapid.IntRange(0, 12).Draw(t, "calls") {
				text := strings.Join(rapid.SliceOfN(word, 0, 12).Draw(t, "text"), "")
				c := Call{
					Tool: tool.Draw(t, "tool"), Arguments: Cut(text, rapid.IntRange(0, 30).Draw(t, "short")),
					Outcome: rapid.SampledFrom([]Outcome{OK, Failed, Interrupted}).Draw(t, "outcome"),
					Pointer: rapid.SampledFrom([]string{"", "ctx:1.0", "ctx:123.1"}).Draw(t, "pointer"),
				}
				if rapid.Bool().Draw(t, "detailed") {
					c.Detail = text
				}
				ledger.Add(c)
				c.Tool = quote.Name(c.Tool)
				calls = append(calls, c)
				x.AddText(text)
				x.AddArguments(c.Arguments)
				f.Add(c.Tool, fmt.Sprintf(`{"path":%q}`, text), nil)
			}
			limit := rapid.Uint64Range(0, 250).Draw(t, "limit")
			shown := x.Shown()
			text := gauge.Draft(0)
			same := func(what string, got []budget.Piece, want string) {
				t.Helper()
				if budget.Join(got) != want {
					t.Fatalf("%s in %d tokens of %s:\n%q, want\n%q", what, limit, gauge.Name(), budget.Join(got), want)
				}
				text.Add(got...)
				shown.Grow(text.String())
				if text.Tokens() != gauge.Text(text.String()) {
					t.Fatalf("after the %s %d tokens, want %d", what, text.Tokens(), gauge.Text(text.String()))
				}
			}
			same("files", f.Write(limit), plainFiles(f, limit, gauge.Text))
			same("calls", ledger.Write(limit), plainWrite(calls, limit, gauge.Text))
			same("excerpts", x.Excerpts(limit, shown, plainQuote), plainExcerpts(x, limit, text.String(), plainQuote, gauge.Text))
			same("names", x.Write(limit, shown), plainNames(x, limit, text.String(), gauge.Text))
		}
	})
}
