package disklog_test

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"weak"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/disklog"
)

// A session that stays in memory does not hold on to what was appended to it last.
func TestAppendedEventsAreLetGo(t *testing.T) {
	store, err := disklog.Open(t.TempDir(), disklog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	said := appendLarge(t, store)
	runtime.GC()
	runtime.GC()
	if said.Value() != nil {
		t.Error("the store keeps the content of the last batch")
	}
	if _, err := store.Session(context.Background(), "s"); err != nil {
		t.Fatal(err)
	}
}

func appendLarge(t *testing.T, store eventlog.Store) weak.Pointer[eventlog.Message] {
	t.Helper()
	m := &eventlog.Message{Role: eventlog.RoleUser, Blocks: []eventlog.Block{eventlog.Text{Text: strings.Repeat("x", 1<<20)}}}
	commit, err := store.Append(context.Background(), "s", eventlog.Batch{Events: []eventlog.Event{{ID: "e", Body: m}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := commit.Wait(context.Background()); err != nil {
		t.Fatal(err)
	}
	return weak.Make(m)
}
