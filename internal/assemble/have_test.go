package assemble_test

import (
	"testing"

	"github.com/contextd/contextd/internal/assemble"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/records"
	"github.com/contextd/contextd/internal/render"
)

// A caller that keeps all messages of a context learns what changed them, after a restart
// too.
func TestWhatChangedWhatACallerHas(t *testing.T) {
	now := []render.Injection{{Name: "now", Blocks: []eventlog.Block{eventlog.Text{Text: "It is noon."}}}}
	ttl := uint32(1)
	reminder := eventlog.Event{ID: "reminder", Body: &eventlog.Reminder{Body: "Mind the gap.", TTLTurns: &ttl}}
	for name, c := range map[string]struct {
		before     []eventlog.Event
		injections []render.Injection
		turns      int // after what the caller has
		cause      string
	}{
		"an injection":                {nil, now, 1, "injections"},
		"a reminder":                  {[]eventlog.Event{reminder}, nil, 1, "reminders"},
		"a reminder and an injection": {[]eventlog.Event{reminder}, now, 1, "reminders"},
		"a cut":                       {nil, now, 30, "dialogue_window"},
	} {
		for _, f := range render.Formats() {
			t.Run(name+"/"+f.Name, func(t *testing.T) {
				onBothStores(t, func(t *testing.T, store eventlog.Store, reopen func() eventlog.Store) {
					push(t, store, "s", opening()...)
					for i := range 5 {
						push(t, store, "s", turn(i+1)...)
					}
					if len(c.before) > 0 {
						push(t, store, "s", c.before...)
					}
					req := request()
					req.Budget.Format, req.Budget.InjectionReserve = f.Name, 100
					req.Injections = c.injections
					engine := newEngine(t, store)
					first := mustAssemble(t, engine, req)
					for i := range c.turns {
						push(t, store, "s", turn(i+11)...)
					}
					req.Have = assemble.Have{MessageCount: first.MessageCount, PrefixHash: first.ContextHash}
					req.Preview = true
					check := func(engine *assemble.Engine) {
						t.Helper()
						got := mustAssemble(t, engine, req)
						whole := req
						whole.Have = assemble.Have{}
						all := mustAssemble(t, engine, whole).Messages
						stable := stableMessages(first.Messages, all)
						cause := c.cause
						if stable == first.PrefixMessages { // where the format has both in one message
							cause = "injections"
						}
						if got.Broken == nil || got.Broken.Cause != cause || got.Broken.Index != stable || got.Skipped != stable {
							t.Errorf("%+v, %d skipped; %d messages are as they were", got.Broken, got.Skipped, stable)
						}
					}
					check(engine)
					store = reopen()
					check(newEngine(t, store))
				})
			})
		}
	}
}

// A caller may hold a part of a context, or a newer context than the one it asks for. The prefix that is
// still valid is found in both cases, also after a restart.
func TestWhatACallerHasIsFoundAfterARestart(t *testing.T) {
	for name, c := range map[string]struct {
		part int // of the messages, how many the caller has not
		asOf eventlog.Seq
	}{
		"a part":          {part: 2},
		"a newer context": {asOf: 6},
	} {
		t.Run(name, func(t *testing.T) {
			onBothStores(t, func(t *testing.T, store eventlog.Store, reopen func() eventlog.Store) {
				push(t, store, "s", opening()...)
				for i := range 8 {
					push(t, store, "s", turn(i+1)...)
				}
				req := request()
				engine := newEngine(t, store)
				first := mustAssemble(t, engine, req)
				has := first.Messages[:len(first.Messages)-c.part]
				h := records.NewHasher()
				for _, m := range has {
					h.Add(m.JSON)
				}
				req.Have = assemble.Have{MessageCount: len(has), PrefixHash: h.Sum()}
				req.Preview = true
				if c.asOf > 0 {
					req.AsOf = &c.asOf
				} else {
					for i := range 30 {
						push(t, store, "s", turn(i+11)...)
					}
				}
				warm := mustAssemble(t, engine, req)
				if warm.Broken == nil || warm.Skipped == 0 || warm.Skipped == len(has) {
					t.Fatalf("%+v, %d of %d skipped", warm.Broken, warm.Skipped, len(has))
				}
				cold := mustAssemble(t, newEngine(t, reopen()), req)
				if cold.Broken == nil || *cold.Broken != *warm.Broken || cold.Skipped != warm.Skipped {
					t.Errorf("after a restart %+v, %d skipped; before it %+v, %d", cold.Broken, cold.Skipped, warm.Broken, warm.Skipped)
				}
			})
		})
	}
}
