package reduce_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/reduce/reducetest"
)

// worked is a session that reads and changes files until a budget forces a cut.
func worked(t *testing.T) *session {
	t.Helper()
	var b strings.Builder
	b.WriteString("system: You help.\nuser: Mend the parser.\n")
	for i := range 40 {
		fmt.Fprintf(&b, "assistant: I look at part %d. | call c%d read {\"path\":\"src/part_%d.go\"}\n", i, i, i%7)
		fmt.Fprintf(&b, "tool: c%d @60 func parse%d in src/part_%d.go\n", i, i, i%7)
		if i == 3 {
			b.WriteString("assistant: I build meanwhile. | call late run {\"command\":\"make\"}\n")
		}
		if i%9 == 4 {
			fmt.Fprintf(&b, "user: Do not forget case %d.\n", i)
		}
	}
	s := newSession()
	events, err := reducetest.ParseEvents(b.String(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.append(events...); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestDigestIsWrittenOnce has a digest kept that a conversation wrote: another one shows it
// without reading what it was written of, until an event changes what it records.
func TestDigestIsWrittenOnce(t *testing.T) {
	s, p, b := worked(t), reduce.DefaultPolicy(), budget.Budget{Target: 2_000, MaxTokens: 2_000}
	first, err := s.reduce(t, p, b, reduce.Ask{})
	if err != nil {
		t.Fatal(err)
	}
	written, ok := s.conv.Written(first.View)
	if !ok || written.AsOf != s.conv.Head() {
		t.Fatalf("no digest is shown, or it is as of %d", written.AsOf)
	}
	run := func(w reduce.Written) (reduce.Result, int) {
		conv := s.fresh()
		pipeline := reduce.NewPipeline(p, conv)
		pipeline.Offer(w)
		r, err := pipeline.Run(b, first.State, reduce.Ask{})
		if err != nil {
			t.Fatal(err)
		}
		return r, reduce.TextsRead(conv)
	}
	if r, read := run(written); read != 0 || !sameView(r.View, first.View) {
		t.Errorf("the texts of %d groups were read for a digest that was there", read)
	}
	if _, read := run(reduce.Written{}); read == 0 {
		t.Error("a digest was written without reading a text")
	}
	later := written
	later.AsOf++
	if _, read := run(later); read == 0 {
		t.Error("a digest of events that are not there was shown")
	}
	late := eventlog.Event{ID: "late", Body: &eventlog.Message{Role: eventlog.RoleTool, Blocks: []eventlog.Block{
		eventlog.ToolResult{CallID: "late", Content: []eventlog.Block{eventlog.Text{Text: "src/late.go fails"}}},
	}}}
	if err := s.append(late); err != nil {
		t.Fatal(err)
	}
	want, _ := run(reduce.Written{})
	if r, read := run(written); read == 0 || !sameView(r.View, want.View) || sameView(r.View, first.View) {
		t.Errorf("the texts of %d groups were read after one of the run changed:\n%s", read, linesOf(reducetest.Show(r.View)))
	}
}

// TestDigestRulesMoveOn fails where a digest of the same log changed and the version of its
// rules did not: a digest that was stored would go on to be shown.
func TestDigestRulesMoveOn(t *testing.T) {
	var all strings.Builder
	for _, target := range []uint64{1_000, 2_000, 4_000} {
		r, err := worked(t).reduce(t, reduce.DefaultPolicy(), budget.Budget{Target: target, MaxTokens: target}, reduce.Ask{})
		if err != nil {
			t.Fatal(err)
		}
		d, _ := r.View.Digest()
		all.WriteString(d.Text)
	}
	const file = "testdata/digest_rules.sum"
	now := fmt.Sprintf("%d %x\n", reduce.DigestRules, sha256.Sum256([]byte(all.String())))
	golden, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(golden) == now {
		return
	}
	if version := fmt.Sprintf("%d ", reduce.DigestRules); strings.HasPrefix(string(golden), version) {
		t.Fatal("digests changed: move digestRules on, and write " + now + "to " + file)
	}
	t.Fatal("write " + now + "to " + file)
}
