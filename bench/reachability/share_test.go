package reachability

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/projection"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/reduce/reducetest"
)

var gauge = reducetest.Gauge

// played is the result of playing a session turn by turn.
type played struct {
	turns int
	// results are the tool-result tokens of the last request, of which reclaimed were saved. resent and
	// spared are the same two counts summed over all requests.
	results, reclaimed, resent, spared uint64
	redacted, restored                 int
	// changes counts the requests at which a result was redacted or restored.
	changes int
}

func (p *played) add(q played) {
	p.turns += q.turns
	p.results += q.results
	p.reclaimed += q.reclaimed
	p.resent += q.resent
	p.spared += q.spared
	p.redacted += q.redacted
	p.restored += q.restored
	p.changes += q.changes
}

// TestCorpusShare prints how much the policy reclaims of each session's tool results, and checks that
// sessions with loops of tool calls save a worthwhile part.
func TestCorpusShare(t *testing.T) {
	var total played
	loops, idle := 0, 0
	t.Logf("%-64s %6s %9s %6s %6s %8s %8s %8s", "session", "turns", "results", "last", "all", "redacted", "restored", "changes")
	for _, s := range sessions(t) {
		p := play(t, s)
		total.add(p)
		t.Log(row(s.name, p))
		if p.turns < 40 || p.results < 20_000 {
			continue
		}
		if loops++; p.spared*20 < p.resent {
			idle++
		}
	}
	t.Log(row("all", total))
	t.Logf("%d of %d long sessions free less than 5%%", idle, loops)
	if loops == 0 || idle*10 > loops || total.spared*7 < total.resent {
		t.Errorf("%d of %d long sessions free next to nothing; %d of %d tokens are spared in all", idle, loops, total.spared, total.resent)
	}
}

func row(name string, p played) string {
	if len(name) > 64 {
		name = name[:64]
	}
	return fmt.Sprintf("%-64s %6d %9d %5.1f%% %5.1f%% %8d %8d %8d", name, p.turns, p.results,
		percent(p.reclaimed, p.results), percent(p.spared, p.resent), p.redacted, p.restored, p.changes)
}

func percent(part, whole uint64) float64 { return 100 * float64(part) / float64(max(whole, 1)) }

// play requests a projection before every model call.
func play(t *testing.T, s recorded) played {
	policy, err := projection.New(projection.Options{Name: projection.ReachabilityGC})
	if err != nil {
		t.Fatal(err)
	}
	conv := reduce.NewConversation(gauge)
	var p played
	var state projection.State
	for i, e := range s.events {
		conv.Append(e)
		if i+1 < len(s.events) && !asks(s.events[i+1]) {
			continue
		}
		v := reduce.NewView(gauge, conv.Groups())
		applied := policy.Apply(v, conv.Turns(), state)
		check(t, s.name, v, applied)
		p.results = v.TierTokens()[budget.TierToolResults]
		p.reclaimed = v.Tokens() - applied.View.Tokens()
		p.resent += p.results
		p.spared += p.reclaimed
		p.restored += len(applied.State.Restored) - len(state.Restored)
		if !reflect.DeepEqual(applied.State, state) {
			p.changes++
		}
		p.turns++
		p.redacted = len(applied.State.Redacted)
		state = applied.State
	}
	return p
}

// asks reports whether an event is the answer to a model call.
func asks(e eventlog.Event) bool {
	m, ok := e.Body.(*eventlog.Message)
	return ok && m.Role == eventlog.RoleAssistant
}

// check checks that the view still shows what must not be dropped: failures, the newest results, and results
// that a message in the root window quotes.
func check(t *testing.T, name string, v reduce.View, applied projection.Applied) {
	t.Helper()
	start := max(0, v.Len()-8)
	recent := map[string]bool{} // lines
	for i := start; i < v.Len(); i++ {
		for _, m := range v.Group(i).Messages {
			for _, b := range m.Blocks {
				if text, ok := b.Block.(eventlog.Text); ok && m.Role != eventlog.RoleTool {
					for line := range strings.SplitSeq(text.Text, "\n") {
						recent[strings.TrimSpace(line)] = true
					}
				}
			}
		}
	}
	for i := range v.Len() {
		g := v.Group(i)
		for c := range g.Calls {
			call := &g.Calls[c]
			if _, gone := applied.View.Edit(i, call.Result, 0); !gone {
				continue
			}
			if i >= start || projection.Failed(call) || g.Pinned {
				t.Fatalf("%s: the result at %d is redacted", name, call.Seq)
			}
			for line := range strings.SplitSeq(call.Body, "\n") {
				if line = strings.TrimSpace(line); len(line) >= 24 && len(line) <= 400 && strings.Contains(line, " ") && strings.ContainsAny(line, "aeiou") && recent[line] {
					t.Fatalf("%s: the result at %d is redacted, and a later message quotes %q", name, call.Seq, line)
				}
			}
		}
	}
}
