package disklog

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/logtest"
)

// slowFS is a disk on which syncs of logs take until they are let go.
type slowFS struct {
	vfs.FS
	mu   sync.Mutex
	gate chan struct{} // nil while syncs pass
}

// openSlow opens a store on such a disk, with a session of one event.
func openSlow(t *testing.T, session string) (*slowFS, *Store) {
	t.Helper()
	disk := &slowFS{FS: vfs.NewMem()}
	s := openMem(t, disk)
	t.Cleanup(func() { s.Close() })
	add(t, s, session, logtest.Say("a"))
	return disk, s
}

func (fs *slowFS) hold() {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.gate = make(chan struct{})
}

func (fs *slowFS) letGo() {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	close(fs.gate)
	fs.gate = nil
}

func (fs *slowFS) pass() {
	fs.mu.Lock()
	gate := fs.gate
	fs.mu.Unlock()
	if gate != nil {
		<-gate
	}
}

func (fs *slowFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := fs.FS.Create(name, category)
	if err == nil && strings.HasSuffix(name, ".log") {
		f = &slowFile{f, fs}
	}
	return f, err
}

type slowFile struct {
	vfs.File
	fs *slowFS
}

func (f *slowFile) Sync() error {
	f.fs.pass()
	return f.File.Sync()
}

func (f *slowFile) SyncData() error {
	f.fs.pass()
	return f.File.SyncData()
}

// impatient is a context that ends after its first look.
type impatient struct {
	context.Context
	looked bool
	done   chan struct{}
}

func newImpatient(ctx context.Context) *impatient {
	done := make(chan struct{})
	close(done)
	return &impatient{Context: ctx, done: done}
}

func (c *impatient) Done() <-chan struct{} { return c.done }

func (c *impatient) Err() error {
	if c.looked {
		return context.Canceled
	}
	c.looked = true
	return nil
}

// Nothing is shown that a crash could take back.
func TestWhatIsVisibleIsDurable(t *testing.T) {
	ctx := t.Context()
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	disk, s := openSlow(t, "s")
	if err := s.PutArtifacts(ctx, "s", eventlog.Artifact{Kind: "k", ID: "i", Value: []byte("old")}); err != nil {
		t.Fatal(err)
	}
	before, err := s.Session(ctx, "s")
	if err != nil {
		t.Fatal(err)
	}
	disk.hold()

	first, err := s.Append(ctx, "s", eventlog.Batch{Events: []eventlog.Event{logtest.Say("b")}})
	if err != nil {
		t.Fatal(err)
	}
	// A batch after it, and a repetition of it, have their places at once.
	second, err := s.Append(ctx, "s", eventlog.Batch{Events: []eventlog.Event{logtest.Say("c"), logtest.Say("b")}})
	if err != nil {
		t.Fatal(err)
	}
	again, err := s.Append(ctx, "s", eventlog.Batch{Events: []eventlog.Event{logtest.Say("b")}})
	if err != nil {
		t.Fatal(err)
	}
	// What is refused because of them is refused once they are durable.
	refusals := map[string]eventlog.Batch{
		"other content": {Events: []eventlog.Event{logtest.Answer("b", "x")}},
		"another head":  {Events: []eventlog.Event{logtest.Say("d")}, ExpectedHead: new(eventlog.Seq(1))},
		"an answer":     {Events: []eventlog.Event{logtest.Answer("d", "x")}},
	}
	for what, b := range refusals {
		if _, err := s.Append(newImpatient(ctx), "s", b); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", what, err)
		}
	}
	third, err := s.Append(ctx, "new", eventlog.Batch{Events: []eventlog.Event{logtest.Say("x")}})
	if err != nil {
		t.Fatal(err)
	}
	var background sync.WaitGroup
	background.Go(func() {
		if err := s.PutArtifacts(ctx, "s", eventlog.Artifact{Kind: "k", ID: "i", Value: []byte("newer")}); err != nil {
			t.Errorf("put: %v", err)
		}
	})

	showsOld := func() {
		t.Helper()
		if session, err := s.Session(ctx, "s"); err != nil || session.Head != 1 || session.ArtifactBytes != before.ArtifactBytes {
			t.Errorf("session: %+v, %v", session, err)
		}
		if events, err := logtest.Collect(s.Read(ctx, "s", 1, 0)); err != nil || len(events) != 1 {
			t.Errorf("read: %d events, %v", len(events), err)
		}
		if head, err := s.WaitPast(newImpatient(ctx), "s", 1); !errors.Is(err, context.Canceled) {
			t.Errorf("wait: %d, %v", head, err)
		}
		if _, err := s.Fork(ctx, eventlog.ForkRequest{ParentID: "s", At: 2, NewID: "f"}); !errors.As(err, new(*eventlog.InvalidError)) {
			t.Errorf("fork: %v", err)
		}
		if all, err := s.ListSessions(ctx, eventlog.SessionQuery{}); err != nil || len(all) != 1 || all[0].Head != 1 {
			t.Errorf("list: %+v, %v", all, err)
		}
		if _, err := s.Session(ctx, "new"); !errors.As(err, new(*eventlog.NotFoundError)) {
			t.Errorf("the new session: %v", err)
		}
		if _, err := logtest.Collect(s.Read(ctx, "new", 1, 0)); !errors.As(err, new(*eventlog.NotFoundError)) {
			t.Errorf("read of the new session: %v", err)
		}
		for _, c := range []eventlog.Commit{first, second, again, third} {
			if _, err := c.Wait(cancelled); !errors.Is(err, context.Canceled) {
				t.Errorf("an append was acknowledged: %v", err)
			}
		}
	}
	showsOld()
	// Until the new version lies in the database, where it is not to be believed.
	_, target, err := s.find("s")
	if err != nil {
		t.Fatal(err)
	}
	for {
		var spare spareIterator
		_, value, err := s.version(&spare, target.own(), "k", 0, "i")
		spare.close()
		if err != nil {
			t.Fatal(err)
		}
		if string(value) == "newer" {
			break
		}
	}
	if a, err := s.Artifact(newImpatient(ctx), "s", "k", 0, "i"); !errors.Is(err, context.Canceled) {
		t.Errorf("the artifact: %s, %v", a.Value, err)
	}
	if all, err := logtest.Collect(s.Artifacts(newImpatient(ctx), "s", eventlog.ArtifactQuery{Kind: "k"})); !errors.Is(err, context.Canceled) {
		t.Errorf("the artifacts: %v, %v", all, err)
	}
	showsOld()

	disk.letGo()
	background.Wait()
	for what, b := range refusals {
		if _, err := s.Append(newImpatient(ctx), "s", b); err == nil || errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for i, c := range []eventlog.Commit{first, second, again, third} {
		receipts, err := c.Wait(ctx)
		if err != nil {
			t.Fatal(err)
		}
		want := []eventlog.Receipt{
			{Seq: 2, EventID: "b"}, {Seq: 3, EventID: "c"}, {Seq: 2, EventID: "b", Duplicate: true}, {Seq: 1, EventID: "x"},
		}[i]
		if diff := logtest.Diff(want, receipts[0]); diff != "" {
			t.Errorf("receipt %d: %s", i, diff)
		}
	}
	if session, err := s.Session(ctx, "s"); err != nil || session.Head != 3 {
		t.Errorf("session: %+v, %v", session, err)
	}
	if a, err := s.Artifact(ctx, "s", "k", 0, "i"); err != nil || string(a.Value) != "newer" {
		t.Errorf("artifact: %s, %v", a.Value, err)
	}
}

// A session that is only just being created cannot be created again, nor found before it
// is.
func TestCreationIsExclusiveBeforeItIsDurable(t *testing.T) {
	ctx := t.Context()
	disk, s := openSlow(t, "parent")
	disk.hold()
	c, err := s.Append(ctx, "s", eventlog.Batch{Events: []eventlog.Event{logtest.Say("a")}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.CreateSession(newImpatient(ctx), eventlog.Session{ID: "s"}); !errors.Is(err, context.Canceled) {
		t.Errorf("create: %v", err)
	}
	if _, err := s.Fork(newImpatient(ctx), eventlog.ForkRequest{ParentID: "parent", NewID: "s"}); !errors.Is(err, context.Canceled) {
		t.Errorf("fork: %v", err)
	}
	disk.letGo()
	if _, err := c.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := s.CreateSession(ctx, eventlog.Session{ID: "s"}); !errors.As(err, new(*eventlog.ExistsError)) {
		t.Errorf("create: %v", err)
	}
}

// Neither a session that is being made nor a fork is shown before it is durable.
func TestCreationIsShownOnceItIsDurable(t *testing.T) {
	ctx := t.Context()
	disk, s := openSlow(t, "parent")
	disk.hold()
	var making sync.WaitGroup
	making.Go(func() {
		if _, err := s.CreateSession(ctx, eventlog.Session{ID: "made"}); err != nil {
			t.Errorf("create: %v", err)
		}
	})
	making.Go(func() {
		if _, err := s.Fork(ctx, eventlog.ForkRequest{ParentID: "parent", At: 1, NewID: "fork"}); err != nil {
			t.Errorf("fork: %v", err)
		}
	})
	for _, id := range []string{"made", "fork"} {
		sl := s.slotOf(id)
		for sl.session.Load() == nil {
			runtime.Gosched()
		}
		s.release(sl)
		if _, err := s.Session(ctx, id); !errors.As(err, new(*eventlog.NotFoundError)) {
			t.Errorf("%s: %v", id, err)
		}
		if _, err := s.Fork(ctx, eventlog.ForkRequest{ParentID: id, NewID: "other"}); !errors.As(err, new(*eventlog.NotFoundError)) {
			t.Errorf("a fork of %s: %v", id, err)
		}
		if err := s.PutArtifacts(ctx, id, eventlog.Artifact{Kind: "k", ID: "i"}); !errors.As(err, new(*eventlog.NotFoundError)) {
			t.Errorf("an artifact of %s: %v", id, err)
		}
	}
	if all, err := s.ListSessions(ctx, eventlog.SessionQuery{}); err != nil || len(all) != 1 {
		t.Errorf("list: %+v, %v", all, err)
	}
	disk.letGo()
	making.Wait()
	if all, err := s.ListSessions(ctx, eventlog.SessionQuery{}); err != nil || len(all) != 3 {
		t.Errorf("list: %+v, %v", all, err)
	}
}

// Much may be appended without waiting: the queue holds writers up, not the
// store.
func TestUnwaitedAppendsAreBounded(t *testing.T) {
	s := openMem(t, vfs.NewMem())
	text := strings.Repeat("x", 1<<20)
	var last eventlog.Commit
	for i := range 100 {
		c, err := s.Append(t.Context(), "s", eventlog.Batch{Events: []eventlog.Event{
			logtest.Message(string(rune('a'+i)), eventlog.RoleUser, eventlog.Text{Text: text}),
		}})
		if err != nil {
			t.Fatal(err)
		}
		last = c
		s.queue.mu.Lock()
		waiting := s.queue.bytes
		s.queue.mu.Unlock()
		if waiting > queueBytes {
			t.Fatalf("%d bytes are waiting to be written", waiting)
		}
	}
	for i := range 500 {
		c, err := s.Append(t.Context(), "s", eventlog.Batch{Events: []eventlog.Event{logtest.Say(fmt.Sprint("small ", i))}})
		if err != nil {
			t.Fatal(err)
		}
		last = c
	}
	if _, err := last.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s.queue.bytes != 0 {
		t.Errorf("%d bytes are said to be waiting", s.queue.bytes)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
