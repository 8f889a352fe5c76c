package client_test

import (
	"errors"
	"iter"
	"os"
	"path/filepath"
	"testing"

	"github.com/contextd/contextd/client"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// A store that was set back, and has as many events again, is noticed by whatever goes on.
func TestSetBackAndGrownAgain(t *testing.T) {
	data, kept := filepath.Join(t.TempDir(), "data"), filepath.Join(t.TempDir(), "kept")
	d := start(t, "127.0.0.1:0", "--data-dir", data)
	c := d.connect(t)
	turn := func(c *client.Client, text string) {
		t.Helper()
		appendTo(t, c, "s", client.User(text))
		if _, err := c.Assemble(t.Context(), &contextdv1.AssembleContextRequest{SessionId: "s"}); err != nil {
			t.Fatal(err)
		}
	}
	replace := func(to, from string) {
		t.Helper()
		d.kill()
		if err := errors.Join(os.RemoveAll(to), os.CopyFS(to, os.DirFS(from))); err != nil {
			t.Fatal(err)
		}
		d = start(t, d.address, "--data-dir", data)
	}
	turn(c, "one")
	replace(kept, data)
	turn(c, "two")
	event, stopEvents := iter.Pull2(c.Events(t.Context(), &contextdv1.ReadEventsRequest{SessionId: "s", Follow: true}))
	defer stopEvents()
	after := []*contextdv1.LifecycleCursor{{SessionId: "s"}}
	happened, stopWatch := iter.Pull2(c.Watch(t.Context(), &contextdv1.WatchLifecycleRequest{After: after}))
	defer stopWatch()
	for n := uint64(1); n <= 2; n++ {
		if e, err, _ := event(); err != nil || e.GetSeq() != n {
			t.Fatal(e, err)
		}
		if e, err, _ := happened(); err != nil || e.GetNumber() != n {
			t.Fatal(e, err)
		}
	}

	replace(data, kept)
	other := d.connect(t)
	turn(other, "another two")
	turn(other, "three")
	if e, err, _ := event(); !errors.Is(err, client.ErrLogLost) {
		t.Errorf("a follower gets %v, %v", e, err)
	}
	if e, err, _ := happened(); !errors.Is(err, client.ErrLogLost) {
		t.Errorf("a watch gets %v, %v", e, err)
	}
	if _, err := c.Append(t.Context(), "s", client.User("three")); !errors.Is(err, client.ErrLogLost) {
		t.Errorf("an append gets %v", err)
	}
	if _, err := c.Assemble(t.Context(), &contextdv1.AssembleContextRequest{SessionId: "s"}); !errors.Is(err, client.ErrLogLost) {
		t.Errorf("an assembly gets %v", err)
	}
}
