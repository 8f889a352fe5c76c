package assemble_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/contextd/contextd/internal/assemble"
	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/budget/bpe"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/disklog"
	"github.com/contextd/contextd/internal/log/logtest"
	"github.com/contextd/contextd/internal/log/memlog"
	"github.com/contextd/contextd/internal/projection"
	"github.com/contextd/contextd/internal/records"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/reduce/reducetest"
	"github.com/contextd/contextd/internal/render"
	"github.com/contextd/contextd/internal/render/rules"
)

// replicas are three daemons that get the same requests: one keeps its store and its
// sessions in memory, one has its store on disk and is started again now and then, and one
// forgets everything between any two requests. What they answer must be the same to the
// last field.
type replicas struct {
	stores  [3]eventlog.Store
	engines [3]*assemble.Engine
	fs      vfs.FS
	heads   map[string]eventlog.Head
	gauge   budget.Gauge
	ids     int
	now     time.Time
}

func newReplicas(t *rapid.T) *replicas {
	encoding, err := bpe.Open(budget.TokenizerO200K)
	if err != nil {
		t.Fatal(err)
	}
	r := &replicas{fs: vfs.NewMem(), heads: map[string]eventlog.Head{}, gauge: budget.NewGauge(encoding)}
	r.stores[0], r.stores[2] = memlog.New(), memlog.New()
	r.engines[0], r.engines[2] = newEngine(t, r.stores[0]), newEngine(t, r.stores[2])
	r.start(t)
	return r
}

func (r *replicas) start(t *rapid.T) {
	store, err := disklog.Open("log", disklog.Options{FS: r.fs})
	if err != nil {
		t.Fatal(err)
	}
	r.stores[1], r.engines[1] = store, newEngine(t, store)
}

func (r *replicas) close(t *rapid.T) {
	for _, s := range r.stores {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// each asks every daemon and compares the answers.
func each[T any](t *rapid.T, r *replicas, ask func(eventlog.Store, *assemble.Engine) (T, error)) (T, error) {
	r.engines[2] = newEngine(t, r.stores[2])
	first, err := ask(r.stores[0], r.engines[0])
	for i := 1; i < len(r.stores); i++ {
		other, otherErr := ask(r.stores[i], r.engines[i])
		if fmt.Sprint(err) != fmt.Sprint(otherErr) {
			t.Fatalf("daemon 0 says %v, daemon %d says %v", err, i, otherErr)
		}
		if reflect.DeepEqual(first, other) {
			continue
		}
		// Empty lists and none are the same, and a daemon does not say what another did.
		if diff := cmp.Diff(first, other, r.sameSessions(t, i), cmpopts.EquateEmpty(), cmpopts.IgnoreUnexported(projection.Options{})); diff != "" {
			t.Fatalf("daemon %d answers otherwise (-0 +%d):\n%s", i, i, diff)
		}
	}
	return first, err
}

// sameSessions treats two incarnation numbers as equal if daemons 0 and i gave them to the same session.
// Numbers may differ, since a number that was erased before a start is used again.
func (r *replicas) sameSessions(t *rapid.T, i int) cmp.Option {
	same := map[[2]eventlog.Incarnation]bool{{}: true}
	for id := range r.heads {
		first, err := r.stores[0].Session(context.Background(), id)
		other, otherErr := r.stores[i].Session(context.Background(), id)
		if err != nil || otherErr != nil {
			t.Fatal(err, otherErr)
		}
		same[[2]eventlog.Incarnation{first.Incarnation, other.Incarnation}] = true
		same[[2]eventlog.Incarnation{other.Incarnation, first.Incarnation}] = true // a comparison is asked both ways
	}
	return cmp.Comparer(func(x, y eventlog.Incarnation) bool { return same[[2]eventlog.Incarnation{x, y}] })
}

func (r *replicas) append(t *rapid.T, id string, events ...eventlog.Event) {
	head, admitted, err := r.heads[id].Admit(events)
	if err != nil {
		t.Fatal(err)
	}
	r.heads[id] = head
	for i := range admitted {
		r.ids++
		admitted[i].ID = fmt.Sprint("event-", r.ids)
		admitted[i].Tokens = r.gauge.CountEvent(admitted[i])
	}
	r.now = r.now.Add(time.Second) // the time at which a session is made distinguishes it from another
	_, _ = each(t, r, func(s eventlog.Store, _ *assemble.Engine) ([]eventlog.Receipt, error) {
		commit, err := s.Append(context.Background(), id, eventlog.Batch{Events: admitted, Time: r.now})
		if err != nil {
			return nil, err
		}
		return commit.Wait(context.Background())
	})
}

func (r *replicas) grow(t *rapid.T, id string) {
	if rapid.Bool().Draw(t, "odd") {
		r.append(t, id, admissible(logtest.GenEvent(r.heads[id], "").Draw(t, "event")))
		return
	}
	for range rapid.IntRange(1, 8).Draw(t, "turns") {
		events := turn(r.ids)
		if rapid.IntRange(0, 3).Draw(t, "reaches back") == 0 {
			reaching(events)
		}
		r.append(t, id, events...)
	}
}

// reaching makes the calls of a turn name what other turns named before.
func reaching(events []eventlog.Event) {
	for _, e := range events {
		blocks := e.Body.(*eventlog.Message).Blocks
		for i, b := range blocks {
			if call, ok := b.(eventlog.ToolCall); ok {
				call.Arguments = strings.Replace(call.Arguments, "}", `,"beside":"pkg/mod/handler.go"}`, 1)
				blocks[i] = call
			}
		}
	}
}

// assemble asks for a context in one of the ways that there are: mostly as before, and now and then
// under any other budget, policy and format.
func (r *replicas) assemble(t *rapid.T, id string) {
	req := assemble.Request{
		SessionID: id,
		Budget:    budget.Spec{MaxTokens: rapid.SampledFrom([]uint64{4000, 4000, 9000}).Draw(t, "max_tokens"), Tokenizer: budget.TokenizerO200K},
		Policy:    assemble.Policy{Reduction: reducetest.Policy()},
		Preview:   rapid.IntRange(0, 3).Draw(t, "preview") == 0,
	}
	cut := &req.Policy.Reduction.Collapse
	cut.CutReach = rapid.SampledFrom([]float64{0, 0.1, 0.1}).Draw(t, "cut_reach")
	cut.CutTo = rapid.SampledFrom([]float64{0, 0, 0.1}).Draw(t, "cut_to")
	cut.CutPaybackTurns = rapid.SampledFrom([]uint32{10, 1000}).Draw(t, "cut_payback_turns")
	if rapid.IntRange(0, 2).Draw(t, "another way") == 0 {
		req.Budget.MaxTokens = rapid.SampledFrom([]uint64{200, 1500, 9000, 200_000}).Draw(t, "another max_tokens")
		req.Budget.Format = rapid.SampledFrom([]string{"anthropic", "openai_chat", "openai_responses", "gemini"}).Draw(t, "format")
		req.Policy.Reduction = rapid.SampledFrom([]reduce.Policy{reduce.DefaultPolicy(), reduce.FrugalPolicy(), reduce.FaithfulPolicy()}).Draw(t, "reduction")
		req.Policy.Projection.Name = rapid.SampledFrom([]string{
			projection.Raw, projection.CleanToolRepair, projection.SquashFailed, projection.ReachabilityGC, projection.HarnessView,
		}).Draw(t, "projection")
	}
	if rapid.IntRange(0, 3).Draw(t, "past") == 0 {
		at := eventlog.Seq(rapid.Uint64Range(0, uint64(r.heads[id].Seq)).Draw(t, "as_of"))
		req.AsOf = &at
	}
	req.IdempotencyKey = rapid.SampledFrom([]string{"", "", "", "one", "two"}).Draw(t, "key")
	got, err := each(t, r, func(_ eventlog.Store, e *assemble.Engine) (*assemble.Context, error) {
		return e.Assemble(context.Background(), req)
	})
	if err != nil {
		return
	}
	checkContext(t, got)
	if got.Projection.ID == "" {
		return
	}
	replay, err := each(t, r, func(_ eventlog.Store, e *assemble.Engine) (assemble.Replay, error) {
		return e.Replay(context.Background(), id, got.Projection.ID)
	})
	if err != nil || !replay.Same {
		t.Fatalf("replayed: %v, %s", err, replay.Difference)
	}
	if diff := cmp.Diff(replay.Recorded, replay.Replayed, cmpopts.EquateEmpty(), cmpopts.IgnoreUnexported(projection.Options{})); diff != "" {
		t.Fatalf("replayed otherwise:\n%s", diff)
	}
}

// checkContext holds a context to its hash, its target and the rules of its provider.
func checkContext(t *rapid.T, c *assemble.Context) {
	sum := sha256.Sum256([]byte(lines(c.Messages)))
	if want := "sha256:" + hex.EncodeToString(sum[:]); c.PrefixHash != want {
		t.Fatalf("the hash is %s, that of the bytes %s", c.PrefixHash, want)
	}
	if target := c.Projection.Budget.Target; c.Projection.Tokens > target {
		t.Fatalf("%d tokens of %d", c.Projection.Tokens, target)
	}
	f, _ := render.FormatNamed(c.Projection.Budget.Format)
	if rules.Of(f.Name) == nil {
		return
	}
	all := make([][]byte, len(c.Messages))
	for i := range all {
		all[i] = c.Messages[i].JSON
	}
	if broken := rules.Of(f.Name)(all); len(broken) > 0 {
		t.Fatalf("%s: %v\n%s", f.Name, broken, lines(c.Messages))
	}
}

// admissible is an event as the API admits it: arguments and provider blocks are UTF-8, these JSON.
func admissible(e eventlog.Event) eventlog.Event {
	m, ok := e.Body.(*eventlog.Message)
	if !ok {
		return e
	}
	var admit func([]eventlog.Block)
	admit = func(blocks []eventlog.Block) {
		for i, b := range blocks {
			switch b := b.(type) {
			case eventlog.ToolCall:
				b.Arguments = strings.ToValidUTF8(b.Arguments, "?")
				blocks[i] = b
			case eventlog.ProviderBlock:
				if !eventlog.IsJSON(b.JSON) {
					b.JSON = "{}"
				}
				blocks[i] = b
			case eventlog.ToolResult:
				admit(b.Content)
			}
		}
	}
	admit(m.Blocks)
	return e
}

func (r *replicas) delete(t *rapid.T, id string) {
	forgets := rapid.Bool().Draw(t, "forgets")
	_, err := each(t, r, func(s eventlog.Store, e *assemble.Engine) (bool, error) {
		err := s.DeleteSession(context.Background(), id, 0, nil)
		if forgets {
			e.Forget(id)
		}
		return true, err
	})
	if err == nil {
		delete(r.heads, id)
	}
}

func (r *replicas) fork(t *rapid.T, parent, id string) {
	at := r.heads[parent].Seq
	r.now = r.now.Add(time.Second)
	_, err := each(t, r, func(s eventlog.Store, _ *assemble.Engine) (eventlog.Seq, error) {
		fork, err := s.Fork(context.Background(), eventlog.ForkRequest{ParentID: parent, At: at, NewID: id, Time: r.now})
		return fork.Head, err
	})
	if err == nil {
		r.heads[id] = r.heads[parent]
	}
}

// TestNothingDependsOnWhatIsInMemory lets the daemons live through the same life.
func TestNothingDependsOnWhatIsInMemory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := newReplicas(t)
		defer r.close(t)
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			id := rapid.SampledFrom([]string{"s", "s", "s", "other"}).Draw(t, "session")
			switch step := rapid.IntRange(0, 20).Draw(t, "step"); {
			case step < 8:
				r.grow(t, id)
			case step < 16:
				r.assemble(t, id)
			case step == 16:
				r.delete(t, id)
			case step == 17:
				r.fork(t, "s", "other")
			case step == 18: // evicted, as where others need the memory
				r.engines[0].Forget(id)
				r.engines[1].Forget(id)
			case step == 19:
				if err := r.stores[1].Close(); err != nil {
					t.Fatal(err)
				}
				r.start(t)
			default:
				_, _ = each(t, r, func(s eventlog.Store, _ *assemble.Engine) ([]string, error) {
					page, err := logtest.Collect(records.After(context.Background(), s, id, ""))
					var ids []string
					for _, r := range page {
						ids = append(ids, r.ID, r.PrefixHash)
					}
					return ids, err
				})
			}
		}
	})
}
