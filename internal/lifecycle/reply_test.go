package lifecycle_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/contextd/contextd/internal/lifecycle"
	eventlog "github.com/contextd/contextd/internal/log"
)

// wantField expects err to name a field; empty expects no error.
func wantField(t *testing.T, err error, field string) {
	t.Helper()
	var invalid *eventlog.InvalidError
	switch {
	case field == "" && err != nil:
		t.Errorf("error is %v; want none", err)
	case field != "" && (!errors.As(err, &invalid) || invalid.Field != field || invalid.Reason == ""):
		t.Errorf("error is %v; want that it names %s", err, field)
	}
}

// calls takes n calls.
func calls(s *lifecycle.Subscriber, n int) []lifecycle.Call {
	var out []lifecycle.Call
	for c := range s.Calls(context.Background()) {
		if out = append(out, c); len(out) == n {
			break
		}
	}
	return out
}

func compaction(session string) lifecycle.Call {
	return lifecycle.Call{SessionID: session, Mode: lifecycle.ModeManual}
}

// TestRepliesThatContradictThemselves are refused, and the call waits on.
func TestRepliesThatContradictThemselves(t *testing.T) {
	for name, test := range map[string]struct {
		reply lifecycle.Reply
		field string
	}{
		"a soup":                {lifecycle.Reply{Decision: "soup"}, "decision"},
		"keep without modify":   {lifecycle.Reply{KeepLastTurns: new(uint32(0))}, "keep_last_turns"},
		"target without":        {lifecycle.Reply{Decision: lifecycle.Allow, TargetTokens: new(uint64(1))}, "target_tokens"},
		"strategy with block":   {lifecycle.Reply{Decision: lifecycle.Block, Strategy: "mask"}, "strategy"},
		"a target of nothing":   {lifecycle.Reply{Decision: lifecycle.Modify, TargetTokens: new(uint64(0))}, "target_tokens"},
		"modify to keep none":   {lifecycle.Reply{Decision: lifecycle.Modify, KeepLastTurns: new(uint32(0))}, ""},
		"modify nothing":        {lifecycle.Reply{Decision: lifecycle.Modify}, ""},
		"nothing, which allows": {lifecycle.Reply{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hooks := lifecycle.NewHooks(lifecycle.HooksOptions{})
				s := hooks.Subscribe(lifecycle.Subscription{PreCompact: true})
				defer s.Close()
				verdict := make(chan lifecycle.Verdict)
				go func() {
					v, err := hooks.PreCompact(t.Context(), compaction("s"))
					if err != nil {
						t.Error(err)
					}
					verdict <- v
				}()
				test.reply.CallID = calls(s, 1)[0].ID
				wantField(t, s.Reply(test.reply), test.field)
				if test.field != "" {
					synctest.Wait()
					select {
					case v := <-verdict:
						t.Errorf("the verdict is %+v", v)
					default:
					}
					wantField(t, s.Reply(lifecycle.Reply{CallID: test.reply.CallID}), "")
				}
				if v := <-verdict; v.Decision == lifecycle.Block || hooks.Overdue() > 0 {
					t.Errorf("the verdict is %+v", v)
				}
			})
		})
	}
}

// TestCallIDs: which ids may be replied to, when.
func TestCallIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hooks := lifecycle.NewHooks(lifecycle.HooksOptions{Instance: "run7"})
		want := lifecycle.Subscription{PreCompact: true, PostCompact: true}
		other, s := hooks.Subscribe(want), hooks.Subscribe(want)
		go func() {
			for c := range other.Calls(t.Context()) {
				if c.Hook == lifecycle.PreCompact {
					wantField(t, other.Reply(lifecycle.Reply{CallID: c.ID}), "")
				}
			}
		}()
		defer other.Close()
		defer s.Close()
		// One that is answered, one that is not, a third that is on its way.
		var ids []string
		verdict := make(chan lifecycle.Verdict, 1)
		ask := func() {
			go func() {
				v, err := hooks.PreCompact(t.Context(), compaction("s"))
				if err != nil {
					t.Error(err)
				}
				verdict <- v
			}()
			ids = append(ids, calls(s, 1)[0].ID)
		}
		ask()
		wantField(t, s.Reply(lifecycle.Reply{CallID: ids[0]}), "")
		<-verdict
		ask()
		if v := <-verdict; hooks.Overdue() != 1 {
			t.Errorf("the verdict is %+v", v)
		}
		hooks.PostCompact(compaction("s"))
		post := calls(s, 1)[0].ID
		ask()
		for name, test := range map[string]struct{ id, field string }{
			"answered":           {ids[0], "call_id"},
			"late":               {ids[1], ""},
			"of post_compact":    {post, "call_id"},
			"none":               {"", "call_id"},
			"made up":            {"soup", "call_id"},
			"another runtime's":  {strings.Replace(ids[2], ".2.", ".1.", 1), "call_id"},
			"another daemon's":   {strings.Replace(ids[2], "run7", "run6", 1), "call_id"},
			"the next one's":     {strings.Replace(ids[2], ".4.", ".5.", 1), "call_id"},
			"no number":          {strings.Replace(ids[2], ".4.", ".x.", 1), "call_id"},
			"another notation":   {strings.Replace(ids[2], ".4.", ".04.", 1), "call_id"},
			"of an unknown hook": {strings.TrimSuffix(ids[2], "pre_compact") + "soup", "call_id"},
		} {
			if slices.Contains(ids[2:], test.id) {
				t.Fatalf("%s: the id is %s still", name, test.id)
			}
			for _, decision := range []lifecycle.Decision{lifecycle.Allow, lifecycle.Block} {
				err := s.Reply(lifecycle.Reply{CallID: test.id, Decision: decision})
				if wantField(t, err, test.field); t.Failed() {
					t.Fatal(name, test.id)
				}
			}
		}
		wantField(t, s.Reply(lifecycle.Reply{CallID: ids[2]}), "")
		if v := <-verdict; v.Decision != lifecycle.Allow {
			t.Errorf("answers to other calls went to this one: %+v", v)
		}
	})
}

// TestAnswerAtTheDeadline: an answer and the deadline at the same
// moment are an answer or none, never half of one.
func TestAnswerAtTheDeadline(t *testing.T) {
	for range 50 {
		synctest.Test(t, func(t *testing.T) {
			hooks := lifecycle.NewHooks(lifecycle.HooksOptions{Deadline: time.Second})
			s := hooks.Subscribe(lifecycle.Subscription{PreCompact: true})
			defer s.Close()
			go func() {
				id := calls(s, 1)[0].ID
				<-time.After(time.Second)
				wantField(t, s.Reply(lifecycle.Reply{CallID: id, Decision: lifecycle.Block, Reason: "no"}), "")
				// Answered or late, the client gets the same answer as before.
			}()
			v, err := hooks.PreCompact(t.Context(), compaction("s"))
			blocked := v.Decision == lifecycle.Block && v.Reason == "no" && hooks.Overdue() == 0
			allowed := v.Decision == lifecycle.Allow && v.Reason == "" && hooks.Overdue() == 1
			if err != nil || blocked == allowed {
				t.Errorf("the verdict is %+v, %v", v, err)
			}
			synctest.Wait()
		})
	}
}

// TestManyAnswers: what is remembered of answered calls is bounded, and an old one's
// second answer does no harm.
func TestManyAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hooks := lifecycle.NewHooks(lifecycle.HooksOptions{})
		s := hooks.Subscribe(lifecycle.Subscription{PreCompact: true})
		var ids []string
		done := make(chan struct{})
		go func() {
			defer close(done)
			for c := range s.Calls(t.Context()) {
				ids = append(ids, c.ID)
				wantField(t, s.Reply(lifecycle.Reply{CallID: c.ID}), "")
			}
		}()
		for range 2000 {
			if v, err := hooks.PreCompact(t.Context(), compaction("s")); err != nil || hooks.Overdue() > 0 {
				t.Fatal(v, err)
			}
		}
		s.Close()
		<-done
		wantField(t, s.Reply(lifecycle.Reply{CallID: ids[0]}), "")
		wantField(t, s.Reply(lifecycle.Reply{CallID: ids[1999]}), "call_id")
		if len(slices.Compact(slices.Sorted(slices.Values(ids)))) != 2000 {
			t.Error("two calls had one id")
		}
	})
}

// FuzzReply: no id makes a reply panic or answer a call that it does not name.
func FuzzReply(f *testing.F) {
	for _, seed := range []string{"", ".", "1.1.pre_compact", "1.1.post_compact", "1.01.pre_compact", "1.18446744073709551616.pre_compact", "1.2.pre_compact"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, id string) {
		synctest.Test(t, func(t *testing.T) {
			hooks := lifecycle.NewHooks(lifecycle.HooksOptions{})
			s := hooks.Subscribe(lifecycle.Subscription{PreCompact: true, PostCompact: true})
			defer s.Close()
			go func() {
				c := calls(s, 1)[0]
				err := s.Reply(lifecycle.Reply{CallID: id, Decision: lifecycle.Block})
				if (err == nil) != (id == c.ID) {
					t.Errorf("%q for %q: %v", id, c.ID, err)
				}
				s.Close()
			}()
			v, err := hooks.PreCompact(t.Context(), compaction("s"))
			if err != nil || (v.Decision == lifecycle.Block) != (id == "1.1.pre_compact") {
				t.Errorf("%q: %+v, %v", id, v, err)
			}
		})
	})
}
