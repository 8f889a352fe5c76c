package lifecycle_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/contextd/contextd/internal/lifecycle"
)

func told(session, summary string) lifecycle.Call {
	c := compaction(session)
	c.Result = &lifecycle.Result{Summary: summary}
	return c
}

// TestPostCompactNeverWaits, and a slow runtime is notified of the newest, in order.
func TestPostCompactNeverWaits(t *testing.T) {
	const bound = 64
	hooks := lifecycle.NewHooks(lifecycle.HooksOptions{})
	s := hooks.Subscribe(lifecycle.Subscription{PostCompact: true})
	defer s.Close()
	for i := range 3 * bound {
		hooks.PostCompact(told("s", fmt.Sprint(i)))
	}
	if s.Lost() != 2*bound {
		t.Errorf("%d calls were dropped", s.Lost())
	}
	for i, c := range calls(s, bound) {
		if want := fmt.Sprint(2*bound + i); c.Result.Summary != want || c.Hook != lifecycle.PostCompact {
			t.Errorf("call %d is %v; want %s", i, c, want)
		}
	}
}

// TestADropSparesQuestions: the bound is on PostCompact calls alone.
func TestADropSparesQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hooks := lifecycle.NewHooks(lifecycle.HooksOptions{})
		s := hooks.Subscribe(lifecycle.Subscription{PreCompact: true, PostCompact: true})
		defer s.Close()
		go func() {
			if v, err := hooks.PreCompact(t.Context(), compaction("asked")); err != nil || v.Decision != lifecycle.Block {
				t.Errorf("the verdict is %+v, %v", v, err)
			}
		}()
		synctest.Wait()
		for i := range 1000 {
			hooks.PostCompact(told("told", fmt.Sprint(i)))
		}
		c := calls(s, 1)[0]
		wantField(t, s.Reply(lifecycle.Reply{CallID: c.ID, Decision: lifecycle.Block}), "")
	})
}

// TestOneCallAtATime: whatever is asked and reported at the same time, a runtime has one
// call of a session at once, and is notified of each session in order.
func TestOneCallAtATime(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		type step struct {
			session string
			pre     bool
			after   time.Duration
		}
		steps := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
			return step{
				session: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "session"),
				pre:     rapid.Bool().Draw(t, "pre"),
				after:   time.Duration(rapid.IntRange(0, 4).Draw(t, "after")) * time.Second,
			}
		}), 1, 20).Draw(rt, "steps")
		thinks := rapid.SliceOfN(rapid.IntRange(0, 7), len(steps), len(steps)).Draw(rt, "thinks")
		synctest.Test(t, func(t *testing.T) {
			const deadline = 5 * time.Second
			hooks := lifecycle.NewHooks(lifecycle.HooksOptions{Deadline: deadline})
			s := hooks.Subscribe(lifecycle.Subscription{PreCompact: true, PostCompact: true})
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			busy := map[string]time.Time{} // until when, by session
			var posts []string
			serving := make(chan struct{})
			go func() {
				defer close(serving)
				n := 0
				for c := range s.Calls(ctx) {
					if left := time.Until(busy[c.SessionID]); left > 0 {
						rt.Errorf("session %s was given a %s while another call had %s left", c.SessionID, c.Hook, left)
					}
					if c.Hook == lifecycle.PostCompact {
						posts = append(posts, c.SessionID+c.Result.Summary)
						continue
					}
					think := time.Duration(thinks[n])*time.Second + time.Millisecond
					n++
					busy[c.SessionID] = time.Now().Add(min(think, deadline))
					// Answers come while the next calls are taken.
					time.AfterFunc(think, func() {
						if err := s.Reply(lifecycle.Reply{CallID: c.ID}); err != nil {
							rt.Error(err)
						}
					})
				}
			}()
			var want []string
			for i, st := range steps {
				<-time.After(st.after)
				if st.pre {
					go func() {
						if v, err := hooks.PreCompact(ctx, compaction(st.session)); err != nil || v.Decision != lifecycle.Allow {
							rt.Errorf("the verdict is %+v, %v", v, err)
						}
					}()
					synctest.Wait()
					continue
				}
				hooks.PostCompact(told(st.session, fmt.Sprint(i)))
				want = append(want, st.session+fmt.Sprint(i))
			}
			<-time.After(time.Hour)
			cancel()
			<-serving
			for _, session := range []string{"a", "b", "c"} {
				of := func(all []string) []string {
					return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return s[:1] != session })
				}
				if !slices.Equal(of(posts), of(want)) {
					rt.Errorf("session %s got %v; want %v", session, of(posts), of(want))
				}
			}
		})
	})
}

// TestClosedSubscribers are neither asked nor notified, and their replies do nothing.
func TestClosedSubscribers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hooks := lifecycle.NewHooks(lifecycle.HooksOptions{OnTimeout: lifecycle.Block})
		s := hooks.Subscribe(lifecycle.Subscription{PreCompact: true, PostCompact: true})
		verdict := make(chan lifecycle.Verdict)
		go func() {
			v, err := hooks.PreCompact(t.Context(), compaction("s"))
			if err != nil {
				t.Error(err)
			}
			verdict <- v
		}()
		id := calls(s, 1)[0].ID
		s.Close()
		s.Close()
		if v := <-verdict; v.Decision != lifecycle.Allow {
			t.Errorf("the verdict is %+v", v)
		}
		wantField(t, s.Reply(lifecycle.Reply{CallID: id, Decision: lifecycle.Block}), "")
		hooks.PostCompact(compaction("s"))
		for c := range s.Calls(t.Context()) {
			t.Errorf("it is called: %v", c)
		}
		began := time.Now()
		if v, err := hooks.PreCompact(t.Context(), compaction("s")); err != nil || v.Decision != lifecycle.Allow || time.Since(began) > 0 {
			t.Errorf("the next verdict is %+v, %v", v, err)
		}
	})
}

// TestAnswerThenLeave: an answer that was taken counts, however soon its giver is
// gone.
func TestAnswerThenLeave(t *testing.T) {
	for range 50 {
		synctest.Test(t, func(t *testing.T) {
			hooks := lifecycle.NewHooks(lifecycle.HooksOptions{})
			s := hooks.Subscribe(lifecycle.Subscription{PreCompact: true})
			go func() {
				wantField(t, s.Reply(lifecycle.Reply{CallID: calls(s, 1)[0].ID, Decision: lifecycle.Block}), "")
				s.Close()
			}()
			if v, err := hooks.PreCompact(t.Context(), compaction("s")); err != nil || v.Decision != lifecycle.Block {
				t.Errorf("the verdict is %+v, %v", v, err)
			}
		})
	}
}
