package summarize_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/logtest"
	"github.com/contextd/contextd/internal/log/memlog"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/summarize"
	storagev1 "github.com/contextd/contextd/proto/contextd/storage/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var gauge = budget.NewGauge(budget.Heuristic{})

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// asked is a backend that answers by a function and keeps what it was asked.
type asked struct {
	answer func(context.Context, summarize.Request) (summarize.Output, error)

	mu       sync.Mutex
	requests []summarize.Request
	running  map[string]int // by session
	most     int
	twice    bool // two of one session ran at once
}

func (a *asked) Summarize(ctx context.Context, r summarize.Request) (summarize.Output, error) {
	a.mu.Lock()
	a.requests = append(a.requests, r)
	if a.running == nil {
		a.running = map[string]int{}
	}
	a.running[r.SessionID]++
	a.twice = a.twice || a.running[r.SessionID] > 1
	n := 0
	for _, k := range a.running {
		n += k
	}
	a.most = max(a.most, n)
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.running[r.SessionID]--
	}()
	return a.answer(ctx, r)
}

func (a *asked) times() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.requests)
}

const wrote = "The parser drops the last line; view.go:42 is where to mend it."

func writes(context.Context, summarize.Request) (summarize.Output, error) {
	return summarize.Output{Text: wrote, Model: "model-1"}, nil
}

func fails(err error) func(context.Context, summarize.Request) (summarize.Output, error) {
	return func(context.Context, summarize.Request) (summarize.Output, error) { return summarize.Output{}, err }
}

func says(text string) func(context.Context, summarize.Request) (summarize.Output, error) {
	return func(context.Context, summarize.Request) (summarize.Output, error) {
		return summarize.Output{Text: text}, nil
	}
}

func takes(d time.Duration) func(context.Context, summarize.Request) (summarize.Output, error) {
	return func(ctx context.Context, r summarize.Request) (summarize.Output, error) {
		select {
		case <-time.After(d):
			return writes(ctx, r)
		case <-ctx.Done():
			return summarize.Output{}, ctx.Err()
		}
	}
}

// world is a daemon around a scheduler: sessions in a store, and somebody who watches.
type world struct {
	t       *testing.T
	store   eventlog.Store
	backend *asked
	*summarize.Scheduler
	registry *summarize.Registry
	// empty sessions have nothing to summarise.
	empty bool

	mu         sync.Mutex
	events     []string
	summarized []string
}

// start starts a scheduler on a store, as a daemon does.
func start(t *testing.T, store eventlog.Store, backend summarize.Backend, o summarize.Options) *world {
	t.Helper()
	w := startAll(t, store, map[string]summarize.Backend{"model": backend}, o)
	w.backend, _ = backend.(*asked)
	return w
}

// startAll is start with several summarizers.
func startAll(t *testing.T, store eventlog.Store, backends map[string]summarize.Backend, o summarize.Options) *world {
	t.Helper()
	all := map[string]summarize.Summarizer{}
	for name, b := range backends {
		all[name] = summarize.Summarizer{Backend: b, Timeout: time.Minute, CoolDown: time.Minute}
	}
	registry, err := summarize.NewRegistry(all)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, store: store, registry: registry}
	o.Store, o.Sessions, o.Registry, o.Observer = store, w, registry, w
	o.Now = func() time.Time { return epoch }
	w.Scheduler = summarize.NewScheduler(o)
	t.Cleanup(w.Close)
	return w
}

// sessions makes a store with sessions of eight events each.
func sessions(t *testing.T, ids ...string) *memlog.Store {
	t.Helper()
	store := memlog.New()
	for _, id := range ids {
		appendTo(t, store, id, epoch)
	}
	return store
}

func appendTo(t *testing.T, store eventlog.Store, id string, at time.Time) {
	t.Helper()
	events := []eventlog.Event{logtest.Say("Mend the parser.")}
	for i := range 3 {
		c := fmt.Sprintf("c%d", i)
		events = append(events, logtest.Call("call "+c, c), logtest.Answer("answer "+c, c))
	}
	events = append(events, logtest.Message("done", eventlog.RoleAssistant, eventlog.Text{Text: "It is mended."}))
	commit, err := store.Append(t.Context(), id, eventlog.Batch{Events: events, Time: at})
	if err == nil {
		_, err = commit.Wait(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
}

func proposal(session string, to eventlog.Seq) summarize.Proposal {
	return summarize.Proposal{SessionID: session, From: 1, To: to, Summarizer: "model", MaxOutputTokens: 200, Trigger: "threshold"}
}

func (w *world) Material(ctx context.Context, p summarize.Proposal) (summarize.Material, error) {
	conv := reduce.NewConversation(gauge)
	for e, err := range w.store.Read(ctx, p.SessionID, p.From, p.To) {
		if err != nil {
			return summarize.Material{}, err
		}
		conv.Append(e)
	}
	if w.empty {
		return summarize.Material{Count: gauge.Text}, nil
	}
	return summarize.Material{Groups: conv.Groups(), Ledger: "tool ×3", Index: "view.go", Count: gauge.Text}, nil
}

func (w *world) Summarized(_ context.Context, sessionID string, s summarize.Summary) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.summarized = append(w.summarized, sessionID+" "+s.ID)
}

func (w *world) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, fmt.Sprintf(format, args...))
}

func (w *world) SummaryStarted(p summarize.Proposal) { w.note("started %s %d", p.SessionID, p.To) }
func (w *world) SummaryReady(p summarize.Proposal, _ summarize.Summary) {
	w.note("ready %s %d", p.SessionID, p.To)
}
func (w *world) SummaryFailed(p summarize.Proposal, reason string) {
	w.note("failed %s %d: %s", p.SessionID, p.To, reason)
}
func (w *world) BreakerChanged(name string, s summarize.BreakerState) {
	w.note("%s %s after %d", name, s.Health, s.Failures)
}

// expect compares what was reported since the last time.
func (w *world) expect(want ...string) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Equal(w.events, want) {
		w.t.Errorf("reported %q, want %q", w.events, want)
	}
	w.events = nil
}

// journal is the state of the only task of a session.
type journal struct {
	Status   string
	Reason   string
	Attempts int
}

var statusNames = map[storagev1.SummaryTaskStatus]string{
	storagev1.SummaryTaskStatus_SUMMARY_TASK_STATUS_PENDING: "pending",
	storagev1.SummaryTaskStatus_SUMMARY_TASK_STATUS_FAILED:  "failed",
	storagev1.SummaryTaskStatus_SUMMARY_TASK_STATUS_DONE:    "done",
}

func (w *world) journal(session string) journal {
	w.t.Helper()
	var all []journal
	for a, err := range w.store.Artifacts(w.t.Context(), session, eventlog.ArtifactQuery{Kind: summarize.TaskKind}) {
		var m storagev1.SummaryTask
		if err == nil {
			err = proto.Unmarshal(a.Value, &m)
		}
		if err != nil {
			w.t.Fatal(err)
		}
		all = append(all, journal{statusNames[m.GetStatus()], m.GetReason(), int(m.GetAttempts())})
	}
	if len(all) != 1 {
		w.t.Fatalf("%d tasks in the journal: %+v", len(all), all)
	}
	return all[0]
}

func (w *world) stored(session string) []summarize.Summary {
	w.t.Helper()
	all, err := logtest.Collect(summarize.NewestFirst(w.t.Context(), w.store, session, 0, ""))
	if err != nil {
		w.t.Fatal(err)
	}
	slices.Reverse(all)
	return all
}
