package memlog_test

import (
	"fmt"
	"testing"

	"github.com/contextd/contextd/internal/costtest"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/logtest"
	"github.com/contextd/contextd/internal/log/memlog"
)

// TestCosts holds forks of forks to testdata/costs.txt.
func TestCosts(t *testing.T) {
	const deep = 300
	start := func(tb testing.TB) func() {
		s := memlog.New()
		fork := func(from, to string, at eventlog.Seq) {
			if _, err := s.Fork(tb.Context(), eventlog.ForkRequest{ParentID: from, NewID: to, At: at}); err != nil {
				tb.Fatal(err)
			}
		}
		if _, err := s.CreateSession(tb.Context(), eventlog.Session{ID: "s0"}); err != nil {
			tb.Fatal(err)
		}
		for i := range deep {
			id := fmt.Sprint("s", i)
			if _, err := s.Append(tb.Context(), id, eventlog.Batch{Events: []eventlog.Event{logtest.Say(id)}}); err != nil {
				tb.Fatal(err)
			}
			fork(id, fmt.Sprint("s", i+1), eventlog.Seq(i+1))
		}
		return func() {
			fork(fmt.Sprint("s", deep), "again", deep)
			if err := s.DeleteSession(tb.Context(), "again", 0, nil); err != nil {
				tb.Fatal(err)
			}
		}
	}
	costtest.Hold(t, "testdata/costs.txt",
		costtest.Operation{Name: "fork the last of 300 forks of forks, and delete that", Start: start},
	)
}
