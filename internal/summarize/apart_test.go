package summarize_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/contextd/contextd/internal/summarize"
)

// TestSummarizersAreApart: one that does not answer costs the sessions that use it a summary, and no
// other session. Of one session nothing runs beside anything, whatever the summarizers.
func TestSummarizersAreApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := startAll(t, sessions(t, "a", "b", "c", "d"), map[string]summarize.Backend{
			"model": &asked{answer: writes}, "stuck": &asked{answer: takes(time.Hour)},
		}, summarize.Options{})
		for _, session := range []string{"a", "b", "c"} {
			p := proposal(session, 4)
			p.Summarizer = "stuck"
			w.Offer(p)
		}
		synctest.Wait()
		began := time.Now()
		if _, err := w.Do(t.Context(), proposal("d", 4)); err != nil || time.Since(began) != 0 {
			t.Errorf("a session of another summarizer waited for %s: %v", time.Since(began), err)
		}
		if _, err := w.Do(t.Context(), proposal("a", 4)); err != nil || time.Since(began) != time.Minute {
			t.Errorf("the same session waited for %s: %v", time.Since(began), err)
		}
	})
}
