package reduce

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
)

// parts returns n events of one group, from an event on.
func parts(from, n int, role eventlog.Role, block func(i int) eventlog.Block) []eventlog.Event {
	all := make([]eventlog.Event, n)
	for i := range all {
		all[i] = eventlog.Event{
			Seq: eventlog.Seq(from + i), ID: fmt.Sprint(from + i),
			Body: &eventlog.Message{Role: role, GroupID: "g", Blocks: []eventlog.Block{block(i)}},
		}
	}
	return all
}

func said(int) eventlog.Block { return eventlog.Text{Text: "x"} }

func appended(c *Conversation, all []eventlog.Event) {
	for _, e := range all {
		c.Append(e)
	}
}

// allocated returns how many bytes f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// A group that callers hold is copied with the first change, and not with each of many more.
func TestGroupIsCopiedOnce(t *testing.T) {
	const n = 3_000
	c := NewConversation(budget.NewGauge(budget.Heuristic{}))
	appended(c, parts(1, n, eventlog.RoleUser, said))
	lent := c.Groups()[0]
	more := parts(n+1, n, eventlog.RoleUser, said)
	took := allocated(func() { appended(c, more) })
	if now := c.Groups()[0]; took > n*10_000 || len(lent.Messages) != n || len(now.Messages) != 2*n || now.Tokens != 2*lent.Tokens {
		t.Errorf("%d bytes for %d events; the group has %d messages, and now %d", took, n, len(lent.Messages), len(now.Messages))
	}
}

// The labels of a group are not copied with each event that adds one.
func TestManyLabelsOfAGroup(t *testing.T) {
	const n = 3_000
	c := NewConversation(budget.NewGauge(budget.Heuristic{}))
	all := parts(1, 2*n, eventlog.RoleAssistant, said)
	for i := range all {
		all[i].Labels = map[string]string{fmt.Sprint(i): "x"}
	}
	took := allocated(func() { appended(c, all[:n]) })
	lent := c.Groups()[0]
	appended(c, all[n:])
	if now := c.Groups()[0]; took > n*10_000 || len(lent.Labels) != n || len(now.Labels) != 2*n {
		t.Errorf("%d bytes for %d events; the group has %d labels, and now %d", took, n, len(lent.Labels), len(now.Labels))
	}
}

// Calls do not move the messages of users that come after them in their group: that would take minutes here.
func TestCallsBeforeManyMessages(t *testing.T) {
	const n = 100_000
	c := NewConversation(budget.NewGauge(budget.Heuristic{}))
	call := func(i int) eventlog.Block {
		return eventlog.ToolCall{CallID: fmt.Sprint(i), Name: "t", Arguments: "{}"}
	}
	appended(c, parts(1, 1, eventlog.RoleAssistant, said))
	appended(c, parts(2, n, eventlog.RoleUser, said))
	c.Groups()
	appended(c, parts(n+2, n, eventlog.RoleAssistant, call))
	g := c.Groups()[0]
	if len(g.Messages) != 1+n+n || g.Messages[n].Role != eventlog.RoleTool || g.Messages[n+1].Seqs[0] != 2 || g.Messages[2*n].Seqs[0] != n+1 {
		t.Errorf("%d messages, and the first of a user is of %v", len(g.Messages), g.Messages[min(n+1, len(g.Messages)-1)].Seqs)
	}
	var tokens uint64
	for i := range g.Messages {
		tokens += g.Messages[i].Tokens
	}
	if tokens != g.Tokens || tokens != c.Tokens() {
		t.Errorf("%d tokens are counted as %d and %d", tokens, g.Tokens, c.Tokens())
	}
}
