package demo

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// picture draws a replay as text, one line per turn.
type picture struct {
	w      io.Writer
	width  int // columns
	colour bool
}

// Widths in columns.
const (
	plainWidth = 100
	leastWidth = 72
	mostWidth  = 160
	// fixedWidth is the width of turn, raw, sent, state and prefix, with the gaps between them.
	fixedWidth = 4 + 2 + 6 + 1 + 6 + 2 + 2 + 1 + 6 + 2 + 5 + 2
	leastBar   = 12
	mostBar    = 40
)

var colours = map[string]string{"green": "\x1b[32m", "yellow": "\x1b[33m", "red": "\x1b[31m"}

func stateName(s contextdv1.BudgetState) string {
	return strings.ToLower(strings.TrimPrefix(s.String(), "BUDGET_STATE_"))
}

func (p *picture) bar() int {
	return min(max((p.width-fixedWidth)/3, leastBar), mostBar)
}

// head writes the legend.
func (p *picture) head(target uint64) error {
	cached, fresh, free := p.glyphs()
	_, err := fmt.Fprintf(p.w, `Each line is one model call; the bar is the target of %s tokens.
  raw     the whole log                   %s  sent before: in the cache
  sent    the context                     %s  new or rewritten
  prefix  the share of the request        %s  free
          before that this one repeats
After it, what was dropped and why:
  full    it would have exceeded the target
  cold    the provider's cache had expired anyway
  batch   enough had gathered

%4s  %6s %6s  %-*s %-6s %6s
`,
		thousands(target), cached, fresh, free, "turn", "raw", "sent", p.bar()+2, "", "", "prefix")
	return err
}

// turn writes a turn's line, after what the user said.
func (p *picture) turn(t *Turn) error {
	if t.Turn == 1 {
		if err := p.head(t.TargetTokens); err != nil {
			return err
		}
	}
	var out strings.Builder
	if t.User != "" {
		fmt.Fprintf(&out, "%4s  %s\n", "", cut("user: "+oneLine(t.User), p.width-6))
	}
	prefix := "new"
	if t.Turn > 1 {
		// Rounded down, so that a changed prefix never shows as 100%.
		prefix = fmt.Sprintf("%d%%", int(math.Floor(t.StableShare*100)))
	}
	line := fmt.Sprintf("%4d  %6s %6s  [%s] %s  %5s  %s",
		t.Turn, thousands(t.RawTokens), thousands(t.ProjectedTokens), p.fill(t), p.paint(t.State, fmt.Sprintf("%-6s", t.State)), prefix,
		cut(note(t), p.width-fixedWidth-p.bar()))
	out.WriteString(strings.TrimRight(line, " "))
	out.WriteByte('\n')
	if t.SummaryReady > 0 {
		fmt.Fprintf(&out, "%4s  summary ready for the next cut: up to event %d of %d\n", "", t.SummaryReady, t.AsOfSeq)
	}
	_, err := io.WriteString(p.w, out.String())
	return err
}

func (p *picture) glyphs() (cached, fresh, free string) {
	if p.colour {
		return "█", "▒", "·"
	}
	return "=", "#", "."
}

// fill draws the bar; its full length is the target.
func (p *picture) fill(t *Turn) string {
	cached, fresh, free := p.glyphs()
	length := p.bar()
	at := func(tokens uint64) int {
		return min(int(math.Round(float64(tokens)*float64(length)/float64(max(t.TargetTokens, 1)))), length)
	}
	used := max(at(t.ProjectedTokens), 1)
	old := min(at(t.StableTokens), used)
	return p.paint(t.State, strings.Repeat(cached, old)+strings.Repeat(fresh, used-old)) + strings.Repeat(free, length-used)
}

func (p *picture) paint(state, s string) string {
	if colour, ok := colours[state]; ok && p.colour {
		return colour + s + "\x1b[0m"
	}
	return s
}

// names are short names for what reducers did to bodies.
var names = map[string]string{
	"duplicates":   "duplicate",
	"tool_results": "stubbed",
	"clipping":     "clipped",
	"thinking":     "thoughts",
}

// note says what was dropped in a turn, and why.
func note(t *Turn) string {
	if t.FreedTokens == 0 && len(t.Evicted) == 0 && t.Collapsed <= 0 {
		return ""
	}
	var parts []string
	for _, reducer := range slices.Sorted(maps.Keys(t.Evicted)) {
		name, ok := names[reducer]
		if !ok {
			name = reducer
		}
		parts = append(parts, fmt.Sprintf("%d %s", t.Evicted[reducer], name))
	}
	if t.Collapsed > 0 && t.Summary != "" {
		parts = append(parts, fmt.Sprintf("%d to summary", t.Collapsed))
	} else if t.Collapsed > 0 {
		parts = append(parts, fmt.Sprintf("%d to ledger", t.Collapsed))
	}
	return fmt.Sprintf("%-5s -%s: %s", t.Reason, thousands(t.FreedTokens), strings.Join(parts, ", "))
}

// totals writes the summary at the end.
func (p *picture) totals(t *Totals) error {
	var out strings.Builder
	fmt.Fprintf(&out, "\n%-36s %12s %12s\n", "", "everything", "contextd")
	row := func(name, all, ours string, share float64) {
		fmt.Fprintf(&out, "%-36s %12s %12s %7.0f%%\n", name, all, ours, 100*share)
	}
	row("tokens sent to the model", grouped(t.TokensAll), grouped(t.Tokens), ratio(float64(t.Tokens), float64(t.TokensAll)))
	row("largest request, tokens", grouped(t.LargestAll), grouped(t.Largest), ratio(float64(t.Largest), float64(t.LargestAll)))
	row("cost (bytes: cached x0.1, new x1.25)", grouped(uint64(t.CostAll)), grouped(uint64(t.Cost)), t.CostRatio)
	fmt.Fprintf(&out, "%-36s %12d %12d\n\n", "changes of the prefix", 0, t.PrefixChanges)
	if t.Summaries > 0 {
		fmt.Fprintf(&out, "%d summaries were made while the model was thinking; %d were used in a context.\n", t.Summaries, t.Quoted)
	}
	if t.PrefixChanges > 0 {
		fmt.Fprintf(&out, "The prefix was changed by: %s.\n", causes(t.Causes))
	}
	if t.OverFrom > 0 {
		fmt.Fprintf(&out, "Sending everything would be over the target from turn %d on.\n", t.OverFrom)
	}
	checks := []string{
		fmt.Sprintf("%d of %d prefix hashes are the SHA-256 of the lines that were received", t.HashesOK, t.Turns),
		fmt.Sprintf("%d of %d recorded contexts were rebuilt with the same bytes", t.Replayed, t.Turns),
		fmt.Sprintf("%d of %d calls are still visible, in full, stubbed or in the ledger", t.VisibleCalls, t.Calls),
		fmt.Sprintf("%d of %d pointers resolve to the result as it was appended", t.Resolved, t.Pointers),
		fmt.Sprintf("%d contexts over the target, %d with an unpaired call or result", t.OverTarget, t.Orphans),
	}
	fmt.Fprintf(&out, "%s of %s messages came over gRPC; the client held the others.\n",
		grouped(uint64(t.SentMessages)), grouped(uint64(t.Messages)))
	fmt.Fprintf(&out, "Checked by the client:\n  %s\n", strings.Join(checks, "\n  "))
	for _, problem := range t.Problems {
		fmt.Fprintf(&out, "%s %s\n", p.paint("red", "FAILED"), problem)
	}
	_, err := io.WriteString(p.w, out.String())
	return err
}

func causes(m map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, fmt.Sprintf("%s %d", name, m[name]))
	}
	return strings.Join(parts, ", ")
}

func ratio(part, whole float64) float64 {
	if whole == 0 {
		return 0
	}
	return part / whole
}

// thousands writes 12345 as 12.3k, in at most six columns below 10^10.
func thousands(n uint64) string {
	if n >= 999_950 {
		return fmt.Sprintf("%.1fM", float64(n)/1e6)
	}
	return fmt.Sprintf("%.1fk", float64(n)/1000)
}

// grouped writes 1234567 as 1,234,567.
func grouped(n uint64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// cut shortens s to at most n runes.
func cut(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	runes := []rune(s)
	return string(runes[:max(n-3, 0)]) + "..."
}
