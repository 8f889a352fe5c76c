package assemble_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/contextd/contextd/internal/artifact"
	"github.com/contextd/contextd/internal/assemble"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/logtest"
	"github.com/contextd/contextd/internal/log/memlog"
	"github.com/contextd/contextd/internal/records"
	"github.com/contextd/contextd/internal/render"
	storagev1 "github.com/contextd/contextd/proto/contextd/storage/v1"
)

// turns is how many turns the test sessions have: enough for several cuts under
// the tight budget.
const turns = 60

func TestEveryTurnIsReproducible(t *testing.T) {
	hashes := map[string][]string{}
	onBothStores(t, func(t *testing.T, store eventlog.Store, reopen func() eventlog.Store) {
		engine := newEngine(t, store)
		push(t, store, "s", opening()...)
		var held []assemble.Message
		var seen []*assemble.Context
		cuts := 0
		for i := range turns {
			push(t, store, "s", turn(i)...)
			got := mustAssemble(t, engine, request())
			all := lines(got.Messages)
			sum := sha256.Sum256([]byte(all))
			if want := "sha256:" + hex.EncodeToString(sum[:]); got.PrefixHash != want || got.ContextHash != want {
				t.Fatalf("turn %d: prefix_hash %s and context_hash %s, the lines hash to %s", i, got.PrefixHash, got.ContextHash, want)
			}
			if got.Budget.Projected > got.Budget.Target {
				t.Fatalf("turn %d: %d tokens of %d", i, got.Budget.Projected, got.Budget.Target)
			}
			stable := stableMessages(held, got.Messages)
			if got.Cache.StableMessages != stable {
				t.Fatalf("turn %d: %d messages reported stable, %d are", i, got.Cache.StableMessages, stable)
			}
			if broken := stable < len(held); broken != (got.Cache.BrokenBy != "") {
				t.Fatalf("turn %d: broken by %q although %d of %d messages still stand", i, got.Cache.BrokenBy, stable, len(held))
			} else if broken {
				cuts++
			}
			again := mustAssemble(t, engine, request())
			if lines(again.Messages) != all {
				t.Fatalf("turn %d: other bytes when assembled again", i)
			}
			if again.Cache.StableMessages != len(got.Messages) || again.Cache.BrokenBy != "" {
				t.Fatalf("turn %d: the same context is reported as %+v", i, again.Cache)
			}
			held, seen = got.Messages, append(seen, got)
			hashes[t.Name()] = append(hashes[t.Name()], got.PrefixHash)
		}
		if cuts < 2 || cuts > turns/4 {
			t.Errorf("%d of %d turns rewrote the prefix; the test wants several cuts, and a stable prefix between them", cuts, turns)
		}

		store = reopen()
		engine = newEngine(t, store)
		for i, want := range seen {
			req := request()
			req.AsOf, req.Preview = &want.AsOf, true
			if got := mustAssemble(t, engine, req); got.PrefixHash != want.PrefixHash {
				t.Fatalf("turn %d: other bytes after a restart", i)
			}
			replay, err := engine.Replay(context.Background(), "s", want.Projection.ID)
			if err != nil {
				t.Fatal(err)
			}
			if !replay.Same {
				t.Fatalf("turn %d: %s", i, replay.Difference)
			}
		}
		if got := mustAssemble(t, engine, request()); got.Cache.StableMessages != len(held) {
			t.Errorf("after a restart %d messages are reported stable of %d", got.Cache.StableMessages, len(held))
		}
	})
	if m, d := hashes["TestEveryTurnIsReproducible/memory"], hashes["TestEveryTurnIsReproducible/disk"]; fmt.Sprint(m) != fmt.Sprint(d) {
		t.Error("the stores give different bytes")
	}
}

func stableMessages(a, b []assemble.Message) int {
	n := 0
	for n < min(len(a), len(b)) && string(a[n].JSON) == string(b[n].JSON) {
		n++
	}
	return n
}

// changeRecord changes a stored record of session s.
func changeRecord(t *testing.T, store eventlog.Store, asOf eventlog.Seq, id string, change func(*storagev1.Projection)) {
	t.Helper()
	a, err := store.Artifact(t.Context(), "s", "projection", asOf, id)
	if err != nil {
		t.Fatal(err)
	}
	m := &storagev1.Projection{}
	if err := proto.Unmarshal(a.Value, m); err != nil {
		t.Fatal(err)
	}
	change(m)
	if err := artifact.Put(t.Context(), store, "s", a, m); err != nil {
		t.Fatal(err)
	}
}

func TestReplayFindsARecordThatDoesNotMatch(t *testing.T) {
	store := memlog.New()
	defer closeStore(t, store)
	engine := newEngine(t, store)
	push(t, store, "s", opening()...)
	id := mustAssemble(t, engine, request()).Projection.ID
	changeRecord(t, store, 2, id, func(m *storagev1.Projection) { m.MessageCount++ })
	replay, err := engine.Replay(context.Background(), "s", id)
	if err != nil {
		t.Fatal(err)
	}
	if replay.Same || !strings.Contains(replay.Difference, "message_count: recorded 3, replayed 2") {
		t.Errorf("replay says %v, %q", replay.Same, replay.Difference)
	}
}

func TestHave(t *testing.T) {
	store := memlog.New()
	defer closeStore(t, store)
	engine := newEngine(t, store)
	push(t, store, "s", opening()...)
	push(t, store, "s", turn(1)...)
	first := mustAssemble(t, engine, request())
	push(t, store, "s", turn(2)...)
	cases := map[string]struct {
		have    assemble.Have
		skipped int
	}{
		"what was sent":      {assemble.Have{MessageCount: len(first.Messages), PrefixHash: first.PrefixHash}, len(first.Messages)},
		"nothing":            {assemble.Have{}, 0},
		"another hash":       {assemble.Have{MessageCount: len(first.Messages), PrefixHash: "sha256:00"}, 0},
		"more than there is": {assemble.Have{MessageCount: 99, PrefixHash: first.PrefixHash}, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			req := request()
			req.Have, req.Preview = c.have, true
			got := mustAssemble(t, engine, req)
			if got.Skipped != c.skipped {
				t.Errorf("skipped %d messages, want %d", got.Skipped, c.skipped)
			}
			if got.Skipped+len(got.Messages) != got.MessageCount {
				t.Errorf("%d skipped and %d sent of %d", got.Skipped, len(got.Messages), got.MessageCount)
			}
			whole := append(append([]assemble.Message(nil), first.Messages[:got.Skipped]...), got.Messages...)
			if sum := sha256.Sum256([]byte(lines(whole))); got.PrefixHash != "sha256:"+hex.EncodeToString(sum[:]) {
				t.Error("what the caller has and what was sent do not hash to prefix_hash")
			}
		})
	}
}

func TestPreviewRecordsNothing(t *testing.T) {
	store := memlog.New()
	defer closeStore(t, store)
	engine := newEngine(t, store)
	push(t, store, "s", opening()...)
	req := request()
	req.Preview = true
	if got := mustAssemble(t, engine, req); got.Projection.ID != "" {
		t.Errorf("a preview was recorded as %s", got.Projection.ID)
	}
	page, err := logtest.Collect(records.After(context.Background(), store, "s", ""))
	if err != nil || len(page) != 0 {
		t.Errorf("%d records, %v", len(page), err)
	}
}

func TestIdempotencyKey(t *testing.T) {
	store := memlog.New()
	defer closeStore(t, store)
	engine := newEngine(t, store)
	push(t, store, "s", opening()...)
	req := request()
	req.IdempotencyKey = "request-1"
	first := mustAssemble(t, engine, req)
	push(t, store, "s", turn(1)...)
	again := mustAssemble(t, engine, req)
	if again.Projection.ID != first.Projection.ID || again.PrefixHash != first.PrefixHash || again.AsOf != first.AsOf {
		t.Errorf("the repeated request gave %s at event %d, want %s at %d", again.Projection.ID, again.AsOf, first.Projection.ID, first.AsOf)
	}
	req.IdempotencyKey = "request-2"
	if other := mustAssemble(t, engine, req); other.AsOf != 4 {
		t.Errorf("another key gave event %d, want the head, 4", other.AsOf)
	}
}

func TestProjectionsPage(t *testing.T) {
	onBothStores(t, func(t *testing.T, store eventlog.Store, _ func() eventlog.Store) {
		engine := newEngine(t, store)
		push(t, store, "s", opening()...)
		var want []string
		for i := range 4 {
			push(t, store, "s", turn(i+1)...)
			for range 3 { // several at one event
				want = append(want, mustAssemble(t, engine, request()).Projection.ID)
			}
		}
		var got []string
		for more := true; more; {
			more = false
			for r, err := range records.After(context.Background(), store, "s", strings.Join(got[max(0, len(got)-1):], "")) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, r.ID)
				if more = len(got)%5 == 0; more { // a page
					break
				}
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("pages hold %v, want %v", got, want)
		}
		_, err := logtest.Collect(records.After(context.Background(), store, "s", "no token"))
		wantField(t, err, "page_token")
	})
}

func wantField(t *testing.T, err error, field string) {
	t.Helper()
	var invalid *eventlog.InvalidError
	if !errors.As(err, &invalid) || invalid.Field != field {
		t.Errorf("error is %v, want one that names %s", err, field)
	}
}

func TestInjections(t *testing.T) {
	store := memlog.New()
	defer closeStore(t, store)
	engine := newEngine(t, store)
	push(t, store, "s", opening()...)
	injection := func(name, text string, reserve uint64) render.Injection {
		return render.Injection{Name: name, Blocks: []eventlog.Block{eventlog.Text{Text: text}}, ReserveTokens: reserve}
	}
	req := request()
	req.Budget.InjectionReserve = 20
	plain := mustAssemble(t, engine, req)

	req.Injections = []render.Injection{injection("clock", "It is noon.", 0)}
	with := mustAssemble(t, engine, req)
	if with.PrefixHash != plain.PrefixHash || with.ContextHash == plain.ContextHash {
		t.Error("an injection must change the context's hash and not the prefix's")
	}
	if n := len(with.Messages); with.Messages[n-1].Origin != render.Injected || with.MessageCount != plain.MessageCount+1 {
		t.Error("the injection must be the last message")
	}
	for name, all := range map[string][]render.Injection{
		"over its own reserve": {injection("clock", strings.Repeat("long ", 10), 5)},
		"over the reserve":     {injection("first", "short", 0), injection("clock", strings.Repeat("long ", 15), 0)},
	} {
		t.Run(name, func(t *testing.T) {
			req := req
			req.Injections = all
			_, err := engine.Assemble(context.Background(), req)
			var over *assemble.InjectionError
			if !errors.As(err, &over) || over.Name != "clock" || over.Tokens <= over.Reserve {
				t.Errorf("error is %v, want one that names the injection and both sizes", err)
			}
		})
	}
}

func TestInjectionsNeverChangeThePrefix(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		with, without := memlog.New(), memlog.New()
		defer with.Close()
		defer without.Close()
		a, b := newEngine(t, with), newEngine(t, without)
		for _, store := range []eventlog.Store{with, without} {
			push(t, store, "s", opening()...)
		}
		for i := range rapid.IntRange(1, 25).Draw(t, "turns") {
			push(t, with, "s", turn(i)...)
			push(t, without, "s", turn(i)...)
			req := request()
			req.Budget.InjectionReserve = 500
			plain := mustAssemble(t, b, req)
			for n := range rapid.IntRange(0, 2).Draw(t, "injections") {
				text := rapid.StringN(1, 40, 200).Draw(t, "text")
				req.Injections = append(req.Injections, render.Injection{Name: fmt.Sprint(n), Blocks: []eventlog.Block{eventlog.Text{Text: text}}})
			}
			got := mustAssemble(t, a, req)
			if got.PrefixHash != plain.PrefixHash {
				t.Fatalf("turn %d: the prefix is another with injections", i)
			}
		}
	})
}

func TestForkKeepsThePrefix(t *testing.T) {
	onBothStores(t, func(t *testing.T, store eventlog.Store, _ func() eventlog.Store) {
		ctx := context.Background()
		engine := newEngine(t, store)
		push(t, store, "s", opening()...)
		var at *assemble.Context
		for i := range turns {
			push(t, store, "s", turn(i)...)
			if got := mustAssemble(t, engine, request()); i == turns/2 {
				at = got
			}
		}
		if _, err := store.Fork(ctx, eventlog.ForkRequest{ParentID: "s", At: at.AsOf, NewID: "fork"}); err != nil {
			t.Fatal(err)
		}
		if err := store.DeleteSession(ctx, "s", 0, nil); err != nil {
			t.Fatal(err)
		}
		engine.Forget("s")
		req := request()
		req.SessionID = "fork"
		got := mustAssemble(t, engine, req)
		if got.PrefixHash != at.PrefixHash {
			t.Error("the fork's context is not the parent's at the fork")
		}
		if got.Cache.StableMessages != at.MessageCount {
			t.Errorf("%d messages of the fork are reported as cached, want all %d", got.Cache.StableMessages, at.MessageCount)
		}
		push(t, store, "fork", turn(1000)...)
		if next := mustAssemble(t, engine, req); next.Cache.BrokenBy != "" {
			t.Errorf("the fork's next turn broke the prefix by %s", next.Cache.BrokenBy)
		}
	})
}

func TestASessionMadeAnewStartsEmpty(t *testing.T) {
	store := memlog.New()
	defer closeStore(t, store)
	engine := newEngine(t, store)
	push(t, store, "s", opening()...)
	push(t, store, "s", turn(1)...)
	mustAssemble(t, engine, request())
	if err := store.DeleteSession(context.Background(), "s", 0, nil); err != nil {
		t.Fatal(err)
	}
	engine.Forget("s")
	var missing *eventlog.NotFoundError
	if _, err := engine.Assemble(context.Background(), request()); !errors.As(err, &missing) || missing.Kind != "session" {
		t.Errorf("error is %v, want that the session does not exist", err)
	}
	push(t, store, "s", text("other", eventlog.RoleUser, "Something else."))
	got := mustAssemble(t, engine, request())
	if got.MessageCount != 1 || !strings.Contains(lines(got.Messages), "Something else.") {
		t.Errorf("the new session shows %s", lines(got.Messages))
	}
}

func TestConcurrentAssemblies(t *testing.T) {
	store := memlog.New()
	defer closeStore(t, store)
	engine := newEngine(t, store)
	push(t, store, "s", opening()...)
	for i := range turns {
		push(t, store, "s", turn(i)...)
	}
	var group sync.WaitGroup
	hashes := make([]string, 8)
	for i := range hashes {
		group.Go(func() {
			got, err := engine.Assemble(context.Background(), request())
			if err != nil {
				t.Error(err)
				return
			}
			hashes[i] = got.PrefixHash
		})
	}
	group.Wait()
	for _, h := range hashes {
		if h != hashes[0] {
			t.Errorf("the same log gave %v", hashes)
			break
		}
	}
	page, err := logtest.Collect(records.After(context.Background(), store, "s", ""))
	if err != nil || len(page) != len(hashes) {
		t.Errorf("%d records of %d assemblies, %v", len(page), len(hashes), err)
	}
}
