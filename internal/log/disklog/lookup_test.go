package disklog

import (
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/logtest"
)

// TestForksOfForksKnowTheirEvents: the last of many knows what each shared with it, and soon looks into
// the segments of none for an event that is new.
func TestForksOfForksKnowTheirEvents(t *testing.T) {
	const deep = 30
	s := openMem(t, vfs.NewMem())
	t.Cleanup(func() { _ = s.Close() })
	say := func(id, event string) eventlog.Receipt {
		t.Helper()
		c, err := s.Append(t.Context(), id, eventlog.Batch{Events: []eventlog.Event{logtest.Say(event)}})
		if err != nil {
			t.Fatal(err)
		}
		receipts, err := c.Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return receipts[0]
	}
	if _, err := s.CreateSession(t.Context(), eventlog.Session{ID: "s0"}); err != nil {
		t.Fatal(err)
	}
	for i := range deep {
		say(fmt.Sprint("s", i), fmt.Sprint("event ", i))
		if _, err := s.Fork(t.Context(), eventlog.ForkRequest{ParentID: fmt.Sprint("s", i), NewID: fmt.Sprint("s", i+1), At: eventlog.Seq(i + 1)}); err != nil {
			t.Fatal(err)
		}
		say(fmt.Sprint("s", i), fmt.Sprint("later ", i)) // which the fork does not share
	}
	last := fmt.Sprint("s", deep)
	for i := range 10 {
		say(last, fmt.Sprint("new ", i))
	}
	sl, target, err := s.find(last)
	if err != nil {
		t.Fatal(err)
	}
	s.release(sl)
	if may, err := s.sharedMayHold(target, eventIDHash("newest")); err != nil || may || target.shared == nil {
		t.Errorf("a new event is looked for in %d segments, %v", len(target.links), err)
	}
	for i := range deep {
		if got := say(last, fmt.Sprint("event ", i)); !got.Duplicate || got.Seq != eventlog.Seq(i+1) {
			t.Errorf("event %d came again as %+v", i+1, got)
		}
	}
	for i := range deep {
		if got := say(last, fmt.Sprint("later ", i)); got.Duplicate {
			t.Errorf("an event that another session has came as %+v", got)
		}
	}
}
