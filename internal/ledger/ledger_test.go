package ledger_test

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/ledger"
)

// perBytes counts a token for every so many bytes.
type perBytes uint64

func (perBytes) Name() string { return "bytes" }

func (n perBytes) Count(text string) budget.Count {
	return budget.Count{Tokens: (len(text) + int(n) - 1) / int(n)}
}

func (perBytes) Cost(text string) uint64 { return uint64(len(text)) }

func (n perBytes) PerToken() uint64 { return uint64(n) }

// quarter counts a token for every four bytes.
var quarter = budget.NewGauge(perBytes(4))

func write(calls []ledger.Call, limit uint64, gauge budget.Gauge) string {
	return budget.Join(ledger.Write(calls, limit, gauge))
}

func call(tool, arguments string, outcome ledger.Outcome, pointer string) ledger.Call {
	return ledger.Call{Tool: tool, Arguments: arguments, Outcome: outcome, Pointer: pointer}
}

// session is nine calls, oldest first.
var session = []ledger.Call{
	call("read", "a.go", ledger.OK, "ctx:1.0"),
	call("bash", "make", ledger.Failed, "ctx:2.0"),
	call("read", "a.go", ledger.OK, "ctx:3.0"),
	call("read", "b.go", ledger.OK, "ctx:4.0"),
	call("bash", "make", ledger.OK, "ctx:5.0"),
	call("edit", "", ledger.OK, "ctx:6.0"),
	call("bash", "make", ledger.Failed, "ctx:7.0"),
	call("bash", "sleep", ledger.Interrupted, ""),
	call("read", "a.go", ledger.OK, "ctx:9.0"),
}

func TestWrite(t *testing.T) {
	for _, c := range []struct {
		limit uint64
		want  string
	}{
		{158, `
read b.go → ok ctx:4.0
bash make → ok ctx:5.0
edit → ok ctx:6.0
bash make → error ×2 ctx:7.0
bash sleep → interrupted
read a.go → ok ×3 ctx:9.0
`},
		{157, `
read ×1
bash make → ok ctx:5.0
edit → ok ctx:6.0
bash make → error ×2 ctx:7.0
bash sleep → interrupted
read a.go → ok ×3 ctx:9.0
`},
		{110, `
bash ×3, 2 error
read ×1
edit ×1
bash sleep → interrupted
read a.go → ok ×3 ctx:9.0
`},
		{90, `
bash ×4, 2 error, 1 interrupted
read ×1
edit ×1
read a.go → ok ×3 ctx:9.0
`},
		{51, `
read ×4
bash ×4, 2 error, 1 interrupted
edit ×1
`},
		{50, "\nread ×4\nother tools ×5, 2 error, 1 interrupted\n"},
		{0, "\nearlier calls ×9, 2 error, 1 interrupted\n"},
	} {
		got := write(session, c.limit, budget.NewGauge(perBytes(1)))
		if "\n"+got != c.want {
			t.Errorf("in %d bytes:\n%s\nwant (%d bytes)%s", c.limit, got, len(c.want)-1, c.want)
		}
	}
	for _, none := range [][]ledger.Call{nil, {}} {
		if got := write(none, 100, quarter); got != "" {
			t.Errorf("no calls are %q", got)
		}
	}
}

func drawCalls(t *rapid.T) []ledger.Call {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) ledger.Call {
		c := ledger.Call{
			Tool:      rapid.SampledFrom([]string{"a", "read", "a_tool_with_a_long_name"}).Draw(t, "tool"),
			Arguments: rapid.SampledFrom([]string{"", "x", `{"path":"y"}`, strings.Repeat("z", 150)}).Draw(t, "arguments"),
			Outcome:   rapid.SampledFrom([]ledger.Outcome{ledger.OK, ledger.Failed, ledger.Interrupted}).Draw(t, "outcome"),
		}
		if c.Outcome != ledger.Interrupted {
			c.Pointer = fmt.Sprintf("ctx:%d.0", rapid.IntRange(1, 9999).Draw(t, "seq"))
		}
		return c
	}), 1, 40).Draw(t, "calls")
}

var (
	summaryLine = regexp.MustCompile(`^(.+) ×(\d+)(?:, (\d+) error)?(?:, (\d+) interrupted)?$`)
	wholeLine   = regexp.MustCompile(`^(\S+)(?: (\S+))? → (ok|error|interrupted)(?: ×(\d+))?(?: (ctx:\S+))?$`)
)

// readLedger counts the calls by tool and outcome as a reader of the text would.
func readLedger(t *rapid.T, text string) map[string]int {
	counts := map[string]int{}
	number := func(s string) int {
		if s == "" {
			return 0
		}
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		if m := wholeLine.FindStringSubmatch(line); m != nil {
			counts[m[1]+" "+m[3]] += max(1, number(m[4]))
			continue
		}
		m := summaryLine.FindStringSubmatch(line)
		if m == nil {
			t.Fatalf("no line of a ledger: %q", line)
		}
		all, failed, interrupted := number(m[2]), number(m[3]), number(m[4])
		counts[m[1]+" ok"] += all - failed - interrupted
		counts[m[1]+" error"] += failed
		counts[m[1]+" interrupted"] += interrupted
	}
	return counts
}

func TestEveryCallIsCountedWhateverTheLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		calls := drawCalls(t)
		limit := rapid.Uint64Range(0, 400).Draw(t, "limit")
		text := write(calls, limit, quarter)
		lastResort := strings.HasPrefix(text, "earlier calls ×")
		if lastResort && strings.Count(text, "\n") != 1 || !lastResort && quarter.Text(text) > limit {
			t.Fatalf("%d tokens for a limit of %d:\n%s", quarter.Text(text), limit, text)
		}
		got := readLedger(t, text)
		for _, c := range calls {
			tool := c.Tool
			switch {
			case lastResort:
				tool = "earlier calls"
			case !strings.HasPrefix(text, tool+" ") && !strings.Contains(text, "\n"+tool+" "):
				tool = "other tools"
			}
			got[tool+" "+c.Outcome.String()]--
		}
		for what, n := range got {
			if n != 0 {
				t.Fatalf("%s: counted %+d too many in\n%s", what, n, text)
			}
		}
	})
}

// writeFull writes the ledger in a simple way, with its newest full lines in full.
func writeFull(calls []ledger.Call, full int) string {
	var lines []string // of calls that read the same, where the newest is
	member := map[int]int{}
	for i, c := range calls {
		newest := i
		times := 0
		for j, d := range calls {
			if d.Tool == c.Tool && d.Arguments == c.Arguments && d.Outcome == c.Outcome {
				newest, times = j, times+1
			}
		}
		member[i] = newest
		if newest != i {
			continue
		}
		line := strings.TrimSuffix(c.Tool+" "+c.Arguments, " ") + " → " + c.Outcome.String()
		if times > 1 {
			line += fmt.Sprintf(" ×%d", times)
		}
		lines = append(lines, strings.TrimSuffix(line+" "+c.Pointer, " "))
	}
	newests := slices.Sorted(func(yield func(int) bool) {
		for i := range calls {
			if member[i] == i && !yield(i) {
				return
			}
		}
	})
	firstWhole := len(calls)
	if full > 0 {
		firstWhole = newests[len(newests)-full]
	}
	// Tools in the order of their first lines, most calls first.
	var tools []string
	for _, i := range newests {
		if !slices.Contains(tools, calls[i].Tool) {
			tools = append(tools, calls[i].Tool)
		}
	}
	type counts struct {
		tool string
		by   [3]int
		n    int
	}
	var rest []counts
	for _, tool := range tools {
		k := counts{tool: tool}
		for i, c := range calls {
			if c.Tool == tool && member[i] < firstWhole {
				k.by[c.Outcome]++
				k.n++
			}
		}
		rest = append(rest, k)
	}
	slices.SortStableFunc(rest, func(a, b counts) int { return b.n - a.n })
	var out strings.Builder
	for _, k := range rest {
		if k.n == 0 {
			continue
		}
		fmt.Fprintf(&out, "%s ×%d", k.tool, k.n)
		if k.by[ledger.Failed] > 0 {
			fmt.Fprintf(&out, ", %d error", k.by[ledger.Failed])
		}
		if k.by[ledger.Interrupted] > 0 {
			fmt.Fprintf(&out, ", %d interrupted", k.by[ledger.Interrupted])
		}
		out.WriteByte('\n')
	}
	for _, line := range lines[len(lines)-full:] {
		out.WriteString(line + "\n")
	}
	return out.String()
}

// As many lines as fit are in full, provided that more full lines never make the ledger shorter.
func TestWriteAgainstTryingEveryNumberOfLines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		calls := drawCalls(t)
		limit := rapid.Uint64Range(0, 400).Draw(t, "limit")
		distinct := map[string]bool{}
		for _, c := range calls {
			distinct[fmt.Sprint(c.Tool, " ", c.Arguments, " ", c.Outcome)] = true
		}
		want := ""
		growing := true
		var before uint64
		for n := 0; n <= len(distinct); n++ {
			text := writeFull(calls, n)
			growing = growing && quarter.Text(text) >= before
			before = quarter.Text(text)
			if before <= limit {
				want = text
			}
		}
		got := write(calls, limit, quarter)
		switch {
		case strings.HasPrefix(got, "earlier calls ×") && (want == "" || !growing):
		case strings.Contains(got, "other tools ×") && want == "" && quarter.Text(got) <= limit:
		case growing && got != want:
			t.Errorf("in %d tokens:\n%s\nwant\n%s", limit, got, want)
		case quarter.Text(got) > limit:
			t.Errorf("%d tokens for a limit of %d:\n%s", quarter.Text(got), limit, got)
		}
	})
}

// measuring counts the texts that are measured.
type measuring struct {
	budget.Heuristic
	texts int
}

func (m *measuring) Cost(text string) uint64 {
	m.texts++
	return m.Heuristic.Cost(text)
}

// The lines of very many tools are not measured for each number of lines that is tried, where most cannot fit.
func TestManyTools(t *testing.T) {
	const tools = 10_000
	counter := &measuring{}
	calls := ledger.NewCalls(budget.NewGauge(counter))
	for i := range tools {
		calls.Add(ledger.Call{Tool: fmt.Sprint("tool", i), Pointer: fmt.Sprintf("ctx:%d.0", i)})
	}
	text := budget.Join(calls.Write(100))
	if !strings.Contains(text, "other tools ×99") || counter.texts > 2*tools {
		t.Errorf("%d texts are measured for\n%s", counter.texts, text)
	}
}
