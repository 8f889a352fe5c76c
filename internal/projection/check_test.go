package projection_test

import (
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/projection"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/reduce/reducetest"
)

// fataler is the part of *testing.T, *rapid.T and scripts that reports failures.
type fataler interface {
	Fatalf(format string, args ...any)
}

// checkApplied checks what must hold of what any policy shows.
func checkApplied(t fataler, conv *reduce.Conversation, o projection.Options, r request) {
	v, got := r.view, r.applied.View
	var sum uint64
	for _, m := range reducetest.Show(got) {
		sum += m.Tokens(gauge)
	}
	if sum != got.Tokens() || sum > v.Tokens() {
		t.Fatalf("%d tokens became %d; what is shown has %d", v.Tokens(), got.Tokens(), sum)
	}
	checkPairs(t, got)
	checkStep(t, o, r)
	was := map[*reduce.Group]int{}
	for i := range v.Len() {
		was[v.Group(i)] = i
	}
	last := -1
	for i := range got.Len() {
		g := got.Group(i)
		at, ok := was[g]
		if !ok || at <= last {
			t.Fatalf("the group at %d is out of order or was not there", g.First)
		}
		last = at
		same := got.Dropped(i) == nil && reflect.DeepEqual(got.Edits(i), v.Edits(at))
		if keeps := v.Spared(at) || at >= v.Len()-keptLast(o); keeps && !same {
			t.Fatalf("the group at %d (anchor %v, pinned %v, %d of %d) was touched", g.First, g.Anchor, g.Pinned, at, v.Len())
		}
		checkRedacted(t, got, i)
		delete(was, g)
	}
	for at, inForce := range v.AllInForce() {
		if inForce != v.InForce(at) {
			t.Fatalf("the group at %d is in force: %t by itself, %t among all", v.Group(at).First, v.InForce(at), inForce)
		}
	}
	for g, at := range was {
		if v.Spared(at) || v.InForce(at) {
			t.Fatalf("the group at %d (anchor %v, pinned %v, standing %q) left", g.First, g.Anchor, g.Pinned, g.Standing)
		}
	}
	checkHumans(t, conv, got)
	checkSeals(t, o, v, got)
	checkCallsNamed(t, conv, got)
}

// checkHumans checks that what a human said first and last is shown.
func checkHumans(t fataler, conv *reduce.Conversation, v reduce.View) {
	var first, newest *reduce.Group
	for _, g := range conv.Groups() {
		for _, m := range g.Messages {
			if m.Human && (first == nil || m.Seqs[0] < firstHuman(first)) {
				first = g
			}
		}
		if g.Human > 0 && (newest == nil || g.Human > newest.Human) {
			newest = g
		}
	}
	for i := range v.Len() {
		if v.Dropped(i) != nil {
			continue
		}
		if v.Group(i) == first {
			first = nil
		}
		if v.Group(i) == newest {
			newest = nil
		}
	}
	if first != nil || newest != nil {
		t.Fatalf("what a human said first (%v) or last (%v) is gone:\n%s", first, newest, linesOf(v))
	}
}

// firstHuman is the first event of a group that is a human's message.
func firstHuman(g *reduce.Group) eventlog.Seq {
	for _, m := range g.Messages {
		if m.Human {
			return m.Seqs[0]
		}
	}
	return 0
}

func keptLast(o projection.Options) int {
	if o.Name == projection.CustomExpression {
		// What it decided stays so where a run took the groups after; checkVerdicts
		// knows what it decides again.
		return 0
	}
	byDefault := map[string]int{projection.CleanToolRepair: 2, projection.SquashFailed: 2, projection.SummaryPrefix: 8}
	if n, ok := byDefault[o.Name]; ok && o.KeepLast == 0 {
		return n
	}
	return int(o.KeepLast)
}

// checkPairs checks that the results after each message answer its calls, in their
// order, and that there are no others.
func checkPairs(t fataler, v reduce.View) {
	var open []string
	for _, m := range reducetest.Show(v) {
		if m.Role != eventlog.RoleTool && len(open) > 0 {
			t.Fatalf("calls %v have no result before %s", open, m.Line(gauge))
		}
		for _, b := range m.Blocks {
			switch b := b.(type) {
			case eventlog.ToolCall:
				open = append(open, b.CallID)
			case eventlog.ToolResult:
				if len(open) == 0 || open[0] != b.CallID {
					t.Fatalf("result %s answers none of %v", b.CallID, open)
				}
				open = open[1:]
			}
		}
	}
	if len(open) > 0 {
		t.Fatalf("calls %v have no result", open)
	}
}

func checkStep(t fataler, o projection.Options, r request) {
	step := r.applied.Step
	if o.PolicyName() == projection.Raw {
		if step != nil || !reflect.DeepEqual(r.view, r.applied.View) {
			t.Fatalf("raw did something: %+v", step)
		}
		return
	}
	if step.Reducer != o.Name || step.TokensBefore != r.view.Tokens() || step.TokensAfter != r.applied.View.Tokens() || step.Note == "" {
		t.Fatalf("from %d to %d tokens: %+v", r.view.Tokens(), r.applied.View.Tokens(), step)
	}
	if same := reflect.DeepEqual(reducetest.Bytes(r.view), reducetest.Bytes(r.applied.View)); same != (step.Touched == 0) {
		t.Fatalf("touched %d, and what is shown is the same: %v", step.Touched, same)
	}
	if blocked := r.applied.SafetyBlocked; blocked != strings.HasPrefix(r.applied.Reason, projection.SafetyBlocked) {
		t.Fatalf("blocked %v, because %q", blocked, r.applied.Reason)
	}
}

// checkRedacted checks that the text in place of a body names the body's pointer.
func checkRedacted(t fataler, v reduce.View, i int) {
	for _, e := range v.Edits(i) {
		b := v.Group(i).Messages[e.Message].Blocks[e.Block]
		if e.Kind == reduce.Redacted && !strings.Contains(e.Text, v.Recall().Pointer(b.Seq, b.Index)+"]") {
			t.Fatalf("no pointer to event %d, block %d, in %q", b.Seq, b.Index, e.Text)
		}
	}
}

var (
	callsRemoved = regexp.MustCompile(`^\[contextd: (\d+) calls? removed: .+\]\n.`)
	earlierCalls = regexp.MustCompile(`(?m)^Earlier tool calls \((\d+)\), oldest first:$`)
)

// checkCallsNamed checks that every call is shown, named where its group was, or
// counted in the digest.
func checkCallsNamed(t fataler, conv *reduce.Conversation, v reduce.View) {
	in := map[*reduce.Group]bool{}
	for i := range v.Len() {
		g := v.Group(i)
		in[g] = true
		d := v.Dropped(i)
		if d == nil {
			continue
		}
		m := append(callsRemoved.FindStringSubmatch(d.Text), "", "")
		if len(g.Calls) > 0 && m[1] != fmt.Sprint(len(g.Calls)) {
			t.Fatalf("%d calls at %d left, with %q", len(g.Calls), g.First, d.Text)
		}
	}
	gone := 0
	for _, g := range conv.Groups() {
		if !in[g] {
			gone += len(g.Calls)
		}
	}
	digest, _ := v.Digest()
	named := 0
	for _, s := range digest.Sections() {
		if s.Kind != reduce.SectionLedger {
			continue
		}
		for _, m := range earlierCalls.FindAllStringSubmatch(s.Text, -1) {
			n, _ := strconv.Atoi(m[1])
			named += n
		}
	}
	if named != gone || digest.Calls != gone {
		t.Fatalf("%d calls are gone; the digest counts %d and names %d", gone, digest.Calls, named)
	}
}

func linesOf(v reduce.View) string {
	var out strings.Builder
	for _, m := range reducetest.Show(v) {
		fmt.Fprintln(&out, strings.TrimRight(m.Line(gauge), " "))
	}
	return out.String()
}
