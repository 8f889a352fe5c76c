package assemble

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/summarize"
)

func mustAcquire(t *testing.T, all *sessions, id string) (*session, func()) {
	t.Helper()
	s, release, err := all.acquire(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return s, release
}

// waits reports whether a caller has to wait for a session.
func waits(t *testing.T, all *sessions, id string) bool {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 50 { // a free session and a done context are both ready
		_, release, err := all.acquire(ctx, id)
		if err == nil {
			release()
			return false
		}
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	return true
}

// TestASessionInUseStays: whatever other sessions are acquired meanwhile, a session in use is not evicted,
// so there is never a second copy of it.
func TestASessionInUseStays(t *testing.T) {
	all := newSessions(1, room, nil, nil, 0)
	a, releaseA := mustAcquire(t, all, "a")
	for i := range 5 {
		_, release := mustAcquire(t, all, fmt.Sprint("other-", i))
		release()
	}
	if !waits(t, all, "a") {
		t.Fatal("a second caller got the session while the first one used it")
	}
	releaseA()
	again, release := mustAcquire(t, all, "a")
	if again != a {
		t.Error("the session was made anew")
	}
	release()
	_, release = mustAcquire(t, all, "b")
	release()
	if len(all.byID) != 1 || all.known("a") || !all.known("b") || all.recent.Len() != 1 {
		t.Errorf("of a limit of one, %d sessions stay", len(all.byID))
	}
}

// TestASessionIsNotWaitedForLong has a call use its session for long: those that wait for it are
// refused in time, all of them at once, and the session is there once it ends.
func TestASessionIsNotWaitedForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := newSessions(1, room, nil, nil, 10*time.Second)
		_, release := mustAcquire(t, all, "a")
		began := time.Now()
		var waiting sync.WaitGroup
		for range 100 {
			waiting.Go(func() {
				_, _, err := all.acquire(t.Context(), "a")
				var busy *SessionBusyError
				if !errors.As(err, &busy) || busy.SessionID != "a" || busy.RetryAfter <= 0 || time.Since(began) != 10*time.Second {
					t.Errorf("after %s: %v", time.Since(began), err)
				}
			})
		}
		waiting.Wait()
		time.AfterFunc(9*time.Second, release)
		s, release := mustAcquire(t, all, "a")
		if s.users != 1 || time.Since(began) != 19*time.Second {
			t.Errorf("%d use it after %s", s.users, time.Since(began))
		}
		release()
	})
}

// TestForgetting: a session that is forgotten while in use is empty for the next caller, and callers that
// wait for it get it.
func TestForgetting(t *testing.T) {
	all := newSessions(4, room, nil, nil, 0)
	s, release := mustAcquire(t, all, "a")
	s.report = &lastReport{}
	all.forget("a")
	if s.report == nil {
		t.Error("a session was emptied under its user's hands")
	}
	empty := make(chan bool)
	go func() {
		next, release, err := all.acquire(context.Background(), "a")
		if err != nil {
			t.Error(err)
			close(empty)
			return
		}
		found := next.report
		release()
		empty <- found == nil
	}()
	release()
	if !<-empty {
		t.Error("the next user found what was forgotten")
	}
	all.forget("a")
	if all.known("a") || all.bytes != 0 {
		t.Errorf("still there, with %d bytes", all.bytes)
	}
	all.forget("nobody")
}

type counter struct{}

func (counter) Name() string                { return "letters" }
func (counter) Count(s string) budget.Count { return budget.Count{Tokens: len(s)} }
func (counter) Cost(s string) uint64        { return uint64(len(s)) }
func (counter) PerToken() uint64            { return 1 }

// room is for what sessions hold in these tests.
const room = 64 << 20

// TestTextIsBounded: if sessions hold too much text, those used least recently are evicted, but never the
// one in use.
func TestTextIsBounded(t *testing.T) {
	all := newSessions(100, room, nil, nil, 0)
	text := strings.Repeat("x", room/3/conversationFactor-1024)
	use := func(id string, times int) {
		s, release := mustAcquire(t, all, id)
		conv := reduce.NewConversation(budget.NewGauge(counter{}))
		for i := range times {
			conv.Append(eventlog.Event{Seq: eventlog.Seq(i + 1), Turn: uint32(i + 1), Body: &eventlog.Message{Role: eventlog.RoleAssistant, Blocks: []eventlog.Block{eventlog.Text{Text: text}}}})
		}
		s.convs.put("letters", conv, 0)
		release()
	}
	known := func() (ids string) {
		for _, id := range []string{"a", "b", "c", "d"} {
			if all.known(id) {
				ids += id
			}
		}
		return ids
	}
	use("a", 1)
	use("b", 1)
	use("c", 1)
	if got := known(); got != "abc" {
		t.Fatalf("%q fit, %d bytes", got, all.bytes)
	}
	use("a", 1) // no more than before
	use("d", 1)
	if got := known(); got != "acd" || all.bytes > room {
		t.Errorf("%q stay, %d bytes; b was not used for longest", got, all.bytes)
	}
	use("c", 4)
	if got := known(); got != "c" || all.bytes < 4*conversationFactor*len(text) {
		t.Errorf("%q stay, %d bytes", got, all.bytes)
	}
	use("c", 0)
	if all.bytes != 0 {
		t.Errorf("%d bytes are counted of nothing", all.bytes)
	}
}

// TestASessionIsBounded: the caches of a session are bounded, and a large session keeps only what its last
// request used.
func TestASessionIsBounded(t *testing.T) {
	for name, test := range map[string]struct {
		text  int
		convs int
	}{
		"small": {1000, maxConversations},
		"large": {room, 1},
	} {
		t.Run(name, func(t *testing.T) {
			all := newSessions(100, room, nil, nil, 0)
			text := strings.Repeat("x", test.text)
			for i := range 50 {
				s, release := mustAcquire(t, all, "s")
				s.makeRoom()
				conv := reduce.NewConversation(budget.NewGauge(counter{}))
				conv.Append(eventlog.Event{Seq: 1, Turn: 1, Body: &eventlog.Message{Role: eventlog.RoleUser, Blocks: []eventlog.Block{eventlog.Text{Text: text}}}})
				way := fmt.Sprint(i)
				s.convs.put(way, conv, 0)
				s.encoded.put(way, nil, len(text))
				s.last.put(way, lastProjection{}, len(text))
				s.projectors.put(way, nil, projectorBytes)
				if got := len(s.convs.entries); got > maxConversations || test.text == room && got > 1 {
					t.Fatalf("%d conversations at once", got)
				}
				release()
				if got := len(s.convs.entries); got > test.convs {
					t.Fatalf("%d conversations are kept", got)
				}
			}
			s, release := mustAcquire(t, all, "s")
			if _, ok := s.convs.get("49"); !ok {
				t.Error("the conversation that was used last is gone")
			}
			if len(s.encoded.entries) > maxFormats || len(s.last.entries) > maxStreams || len(s.projectors.entries) > maxProjectors {
				t.Errorf("kept: %d formats, %d streams, %d policies", len(s.encoded.entries), len(s.last.entries), len(s.projectors.entries))
			}
			release()
			if want := conversationFactor * (test.text + 1024) * (test.convs + maxStreams + maxFormats); all.bytes > want+maxProjectors*(projectorBytes+10) {
				t.Errorf("%d bytes are kept", all.bytes)
			}
		})
	}
}

// TestSessionsThatAreWaitedFor acquires several large sessions at once. A session that callers wait for
// cannot be evicted, but it is reset.
func TestSessionsThatAreWaitedFor(t *testing.T) {
	const room, each = 1000, 800
	all := newSessions(10, room, nil, nil, 0)
	for _, id := range []string{"a", "b", "c"} {
		s, release := mustAcquire(t, all, id)
		all.join(id) // who waits for it
		s.quoted.put("", summarize.Summary{}, each)
		release()
		if all.bytes > room {
			t.Errorf("after %s: %d bytes are held, with room for %d", id, all.bytes, room)
		}
		if held := s.held(); held != s.bytes {
			t.Errorf("%s holds %d bytes and is counted with %d", id, held, s.bytes)
		}
	}
	if all.bytes != each {
		t.Errorf("%d bytes are held; the first session fits", all.bytes)
	}
}

// TestEnginesShareMemory: sessions of the same id in two engines are two, and one bound holds
// for both.
func TestEnginesShareMemory(t *testing.T) {
	all := newSessions(1, room, nil, nil, 0)
	others := all.sessions()
	mine, release := mustAcquire(t, all, "a")
	theirs, releaseTheirs := mustAcquire(t, others, "a")
	if mine == theirs {
		t.Error("they have one session")
	}
	release()
	releaseTheirs()
	if all.known("a") || !others.known("a") || all.recent.Len() != 1 {
		t.Errorf("of a limit of one, %d sessions stay", all.recent.Len())
	}
	all.forget("a")
	if !others.known("a") {
		t.Error("one engine forgot what the other has")
	}
}
