package disklog

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/logtest"
)

// A deletion is not shown either before it is durable: until then a session is there, or whoever looks
// waits.
func TestDeletionIsShownOnceItIsDurable(t *testing.T) {
	ctx := t.Context()
	disk, s := openSlow(t, "s")
	if err := s.PutArtifacts(ctx, "s", eventlog.Artifact{Kind: "k", ID: "i", Value: []byte("v")}); err != nil {
		t.Fatal(err)
	}
	disk.hold()
	var deletion sync.WaitGroup
	deletion.Go(func() {
		if err := s.DeleteSession(ctx, "s", 0, nil); err != nil {
			t.Errorf("delete: %v", err)
		}
	})
	_, target, err := s.find("s")
	if err != nil {
		t.Fatal(err)
	}
	for target.dying.Load() == nil {
		runtime.Gosched()
	}
	for _, err := s.event(target.own(), 1); err == nil; { // until the deletion lies in the database
		_, err = s.event(target.own(), 1)
	}
	looks := map[string]func(context.Context) error{
		"read": func(ctx context.Context) error {
			_, err := logtest.Collect(s.Read(ctx, "s", 1, 0))
			return err
		},
		"read runs": func(ctx context.Context) error {
			_, err := logtest.Collect(s.ReadRuns(ctx, "s", eventlog.Ranges{{From: 1, To: 1}}))
			return err
		},
		"chain": func(ctx context.Context) error {
			_, err := s.ChainHead(ctx, "s", 1)
			return err
		},
		"artifacts": func(ctx context.Context) error {
			_, err := logtest.Collect(s.Artifacts(ctx, "s", eventlog.ArtifactQuery{Kind: "k"}))
			return err
		},
		"artifact": func(ctx context.Context) error {
			_, err := s.Artifact(ctx, "s", "k", 0, "i")
			return err
		},
		"kinds": func(ctx context.Context) error {
			_, err := s.ArtifactKinds(ctx, "s")
			return err
		},
		"verify": func(ctx context.Context) error { return s.Verify(ctx, "s") },
	}
	listed := make(chan int, 1)
	deletion.Go(func() {
		all, err := s.ListSessions(ctx, eventlog.SessionQuery{})
		if err != nil {
			t.Errorf("list: %v", err)
		}
		listed <- len(all)
	})
	for name, look := range looks {
		if err := look(newImpatient(ctx)); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
	select {
	case n := <-listed:
		t.Errorf("%d sessions are listed", n)
		listed <- 0
	default:
	}
	if _, err := s.Session(ctx, "s"); err != nil {
		t.Errorf("session: %v", err)
	}
	disk.letGo()
	deletion.Wait()
	if n := <-listed; n > 0 {
		t.Errorf("%d sessions are listed after the deletion", n)
	}
	looks["session"] = func(ctx context.Context) error {
		_, err := s.Session(ctx, "s")
		return err
	}
	for name, look := range looks {
		if err := look(ctx); !errors.As(err, new(*eventlog.NotFoundError)) {
			t.Errorf("%s of what is deleted: %v", name, err)
		}
	}
}

// A deletion that expects another head is refused once that is durable.
func TestAnotherHeadIsShownOnceItIsDurable(t *testing.T) {
	ctx := t.Context()
	disk, s := openSlow(t, "s")
	disk.hold()
	c, err := s.Append(ctx, "s", eventlog.Batch{Events: []eventlog.Event{logtest.Say("b")}})
	if err != nil {
		t.Fatal(err)
	}
	refused := make(chan error)
	go func() { refused <- s.DeleteSession(ctx, "s", 0, new(eventlog.Seq(1))) }()
	for waiting := false; !waiting; {
		select {
		case err := <-refused:
			t.Errorf("before that: %v", err)
			disk.letGo()
			return
		default:
		}
		if waiting = !s.deleting.TryRLock(); !waiting {
			s.deleting.RUnlock()
			runtime.Gosched()
		}
	}
	disk.letGo()
	mismatch, refusal := (*eventlog.HeadMismatchError)(nil), <-refused
	if !errors.As(refusal, &mismatch) || mismatch.Actual != 2 {
		t.Errorf("after that: %v", refusal)
	}
	if _, err := c.Wait(ctx); err != nil {
		t.Error(err)
	}
}
