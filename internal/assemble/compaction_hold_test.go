package assemble_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/contextd/contextd/internal/assemble"
	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/projection"
	"github.com/contextd/contextd/internal/reduce"
)

// TestCompactionsHoldForEveryReader has callers compact random sessions and undo that, between forks,
// restarts and assemblies with all sorts of budgets, formats and policies. What a compaction in force
// dropped is in no context, and everything else is as it would be without the compaction.
func TestCompactionsHoldForEveryReader(t *testing.T) {
	seen := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		h := newHistory(t, seen)
		defer h.close()
		for range rapid.IntRange(4, 14).Draw(t, "steps") {
			h.step(h.branches[rapid.IntRange(0, len(h.branches)-1).Draw(t, "branch")])
		}
		h.end()
	})
	for _, what := range []string{"mask", "window", "summarize", "own text", "undo", "fork", "as of", "again", "refused", "late", "boundary"} {
		if seen[what] == 0 {
			t.Errorf("no session had this: %s; all of them had %v", what, seen)
		}
	}
}

func (h *history) step(b *branch) {
	switch rapid.IntRange(0, 12).Draw(h.T, "what") {
	case 0, 1:
		for range rapid.IntRange(1, 4).Draw(h.T, "turns") {
			h.turn(b)
		}
	case 2:
		if len(b.pending) > 0 {
			h.seen["late"]++
			h.result(b, b.pending[0])
			b.pending = b.pending[1:]
		}
	case 3, 4:
		h.assemble(b, h.request(b))
	case 5:
		req, at := h.request(b), eventlog.Seq(rapid.IntRange(1, len(b.said)).Draw(h.T, "as of"))
		req.AsOf, req.Preview = &at, rapid.Bool().Draw(h.T, "preview")
		h.seen["as of"]++
		h.assemble(b, req)
	case 6:
		if len(b.answers) > 0 {
			h.again(b, b.answers[rapid.IntRange(0, len(b.answers)-1).Draw(h.T, "answer")])
		}
	case 7:
		h.undo(b)
	case 8:
		if len(h.branches) < 4 {
			h.fork(b)
		}
	case 9:
		h.shut(h.worlds[1])
		h.open()
	default:
		h.compact(b)
	}
}

func (h *history) assemble(b *branch, req assemble.Request) {
	h.Helper()
	do := func(w *world) (*assemble.Context, error) { return w.engine.Assemble(context.Background(), req) }
	show := func(c *assemble.Context) string {
		return fmt.Sprint(c.Projection.ID, c.Projection.Kept, c.Projection.Redacted, c.Projection.Dropped, "\n", lines(c.Messages))
	}
	got, err := both(h, do, show)
	if err != nil {
		h.refused(err)
		return
	}
	h.check(b, got)
	now := answer{req, got.AsOf, got.Projection.Fingerprint, lines(got.Messages)}
	h.again(b, now)
	if !req.Preview {
		// The decisions of this context also hold for earlier ones as of the same event and fingerprint, in
		// every format: do not compare with those any more.
		b.answers = slices.DeleteFunc(b.answers, func(a answer) bool { return a.asOf == now.asOf && a.fingerprint == now.fingerprint })
		b.answers = append(b.answers, now)
	}
}

// refused accepts errors of contexts that cannot be made (over budget, nothing shown, invalid) and fails
// for all others.
func (h *history) refused(err error) {
	h.Helper()
	h.seen["refused"]++
	var over *assemble.BudgetError
	var none *assemble.NothingShownError
	var invalid *eventlog.InvalidError
	if !errors.As(err, &over) && !errors.As(err, &none) && !errors.As(err, &invalid) {
		h.Fatal(err)
	}
}

// again repeats an earlier request as of the same event and expects the same answer.
func (h *history) again(b *branch, a answer) {
	h.Helper()
	h.seen["again"]++
	req := a.req
	req.AsOf, req.Preview = &a.asOf, true
	got, err := both(h, func(w *world) (*assemble.Context, error) { return w.engine.Assemble(context.Background(), req) },
		func(c *assemble.Context) string { return lines(c.Messages) })
	if err != nil || lines(got.Messages) != a.lines {
		h.Fatalf("%s as of %d by %+v showed\n%s\nand shows now (%v)\n%s", b.id, a.asOf, req.Budget, a.lines, err, lines(got.Messages))
	}
}

// check compares a context with what the test knows of the log at its event.
func (h *history) check(b *branch, c *assemble.Context) {
	h.Helper()
	fail := func(format string, a ...any) {
		h.Helper()
		h.Fatalf("%s, %s as of %d by %+v: %s\n%s", b.id, c.Projection.Policy, c.AsOf, c.Budget, fmt.Sprintf(format, a...), strings.ReplaceAll(lines(c.Messages), strings.TrimSpace(filler), "…"))
	}
	if c.Budget.Projected > c.Budget.Target {
		fail("%d tokens of %d", c.Budget.Projected, c.Budget.Target)
	}
	if err := pairs(c); err != nil {
		fail("%v", err)
	}
	shown := shownBy(c.Projection)
	whole := map[eventlog.Seq]bool{}
	for _, seq := range c.Projection.Kept.Seqs() {
		whole[seq] = true
	}
	for _, m := range c.Messages {
		for _, seq := range m.Seqs {
			if int(seq) <= len(b.said) && b.said[seq-1].word != "" && !shown[seq] {
				fail("event %d is in a message and not in the record", seq)
			}
		}
	}
	standing, void := b.standing(c.AsOf)
	all := lines(c.Messages)
	for _, d := range standing {
		for seq, gone := range b.left(d, c.AsOf) {
			switch word := b.said[seq-1].word; {
			case gone && (shown[seq] || strings.Contains(all, word)):
				fail("the compaction at %d took event %d (%s) away", d.seq, seq, word)
			case !gone && whole[seq]:
				fail("the compaction at %d masked event %d", d.seq, seq)
			}
		}
	}
	for _, text := range void {
		if text != "" && strings.Contains(all, text) {
			fail("%q was taken back", text)
		}
	}
	full := c.Projection.Policy == projection.Full
	large := full || c.Budget.Target > 500_000 && c.Projection.Policy == projection.Raw
	for i, s := range b.said[:c.AsOf] {
		seq := eventlog.Seq(i + 1)
		gone := slices.ContainsFunc(standing, func(d decided) bool {
			return d.gone[s.first] || slices.Contains(d.kept, s.first) && seq != b.human(d.seq)
		})
		if large && s.word != "" && !gone && !shown[seq] {
			fail("event %d is not shown, and nobody took it away", seq)
		}
		masked := slices.ContainsFunc(standing, func(d decided) bool { return d.masked[seq] })
		if full && s.word != "" && !gone && !masked && !whole[seq] {
			fail("event %d is not shown as it is", seq)
		}
	}
}

func (h *history) compact(b *branch) {
	c := assemble.Compaction{
		SessionID: b.id, Request: h.request(b), Measured: rapid.Bool().Draw(h.T, "measured"),
		KeepLastTurns: rapid.SampledFrom([]uint32{0, 1, 1, 4}).Draw(h.T, "keep"),
		TargetTokens:  rapid.SampledFrom([]uint64{0, 0, 400, 2_000}).Draw(h.T, "target"),
	}
	kind := rapid.SampledFrom([]string{"mask", "window", "summarize", "own text", "open"}).Draw(h.T, "kind")
	switch kind {
	case "own text":
		c.Summary = "Nothing leaks so far: " + h.word()
	case "open":
	default:
		c.Strategy = reduce.Strategy(kind)
	}
	done, err := both(h, func(w *world) (*assemble.Compacted, error) { return w.compactedOr(c) }, func(done *assemble.Compacted) string {
		if done == nil {
			return "nothing"
		}
		return fmt.Sprintf("%+v %+v %+v %+v %d", *done.Event.Decision, done.Before, done.After, done.Short, done.Archived)
	})
	if err != nil {
		h.refused(err)
		return
	}
	if done == nil {
		return
	}
	h.seen[kind]++
	h.drawn++
	b.said = append(b.said, saying{})
	d := decided{seq: b.head(), gone: map[eventlog.Seq]bool{}, masked: map[eventlog.Seq]bool{}, summary: c.Summary}
	what := done.Event.Decision
	d.kept, d.lateAfter = append(slices.Clone(what.Kept), b.human(d.seq)), what.LateAfter
	h.Logf("%s: the compaction at %d by %s to %d, %s %v, decides %+v", b.id, d.seq, kind, c.TargetTokens, c.Request.Policy.Projection.Name, c.Measured, what)
	for i, s := range b.said {
		if s.word != "" && s.first <= what.Through && !s.stays && !slices.Contains(d.kept, s.first) {
			d.gone[s.first] = true
		}
		if seq := eventlog.Seq(i + 1); slices.Contains(what.Masked, eventlog.Place{Seq: seq}) {
			d.masked[seq] = true
		}
	}
	before, _ := b.standing(d.seq)
	b.marks = append(b.marks, d)
	for _, old := range before {
		for seq, gone := range b.left(old, d.seq) {
			if gone && !d.gone[b.said[seq-1].first] {
				h.Fatalf("%s: the compaction at %d took event %d away, the one at %d does not: %+v", b.id, old.seq, seq, d.seq, what)
			}
		}
	}
	large := assemble.Request{SessionID: b.id, Preview: true, Budget: budget.Spec{MaxTokens: 1_000_000, Tokenizer: budget.TokenizerO200K}}
	h.assemble(b, large)
}

// undo undoes compactions on both stores, from a drawn one on or just the newest.
func (h *history) undo(b *branch) {
	standing, _ := b.standing(b.head())
	var from eventlog.Seq
	if len(standing) > 0 && rapid.Bool().Draw(h.T, "named") {
		from = standing[rapid.IntRange(0, len(standing)-1).Draw(h.T, "from")].seq
	}
	taken, err := both(h, func(w *world) ([]eventlog.Seq, error) {
		return w.engine.Undo(context.Background(), b.id, from, func(ctx context.Context, c *eventlog.Compaction) error {
			_, err := mark(ctx, w.tb, w.store, b.id, c)
			return err
		})
	}, func(seqs []eventlog.Seq) string { return fmt.Sprint(seqs) })
	if err != nil {
		h.Fatal(err)
	}
	if len(taken) == 0 {
		if len(standing) > 0 {
			h.Fatalf("%s: nothing was taken back of %v", b.id, standing)
		}
		return
	}
	h.seen["undo"]++
	h.Logf("%s: %v taken back", b.id, taken)
	h.drawn++
	b.said = append(b.said, saying{})
	b.marks = append(b.marks, decided{seq: b.head(), undoes: taken[0]})
	h.assemble(b, assemble.Request{SessionID: b.id, Budget: budget.Spec{MaxTokens: 1_000_000, Tokenizer: budget.TokenizerO200K}})
}

func (h *history) fork(b *branch) {
	at := eventlog.Seq(rapid.IntRange(2, len(b.said)).Draw(h.T, "fork at"))
	out := &branch{id: fmt.Sprintf("fork-%d", len(h.branches)), said: slices.Clone(b.said[:at])}
	for _, w := range h.worlds {
		if _, err := w.store.Fork(context.Background(), eventlog.ForkRequest{ParentID: b.id, At: at, NewID: out.id}); err != nil {
			h.Fatal(err)
		}
	}
	h.seen["fork"]++
	later := func(seq eventlog.Seq) bool { return seq > at }
	out.humans = slices.DeleteFunc(slices.Clone(b.humans), later)
	out.pending = slices.DeleteFunc(slices.Clone(b.pending), func(call int) bool { return call >= int(at) })
	out.marks = slices.DeleteFunc(slices.Clone(b.marks), func(d decided) bool { return d.seq > at })
	for i := range out.marks {
		out.marks[i].gone = maps.Clone(out.marks[i].gone)
	}
	for _, a := range b.answers {
		if a.asOf <= at {
			a.req.SessionID = out.id
			out.answers = append(out.answers, a)
		}
	}
	h.branches = append(h.branches, out)
}

// end checks every branch a last time, and replays all recorded projections.
func (h *history) end() {
	for _, b := range h.branches {
		for _, a := range b.answers {
			h.again(b, a)
		}
		h.assemble(b, h.request(b))
		for _, w := range h.worlds {
			mustReplay(h, w, b.id)
		}
	}
}
