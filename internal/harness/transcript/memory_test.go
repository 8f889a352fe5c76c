package transcript_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

func open(t *testing.T, m *transcript.Memory) *transcript.Account {
	t.Helper()
	a, err := m.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestMemory: memory that one transcript holds is refused to another until it is released, and only then may
// a retry succeed.
func TestMemory(t *testing.T) {
	m := transcript.NewMemory(4 << 20)
	first, second := open(t, m), open(t, m)
	if err := first.Retain(3 << 20); err != nil {
		t.Fatal(err)
	}
	var limit *transcript.LimitError
	if err := second.Retain(2 << 20); !errors.As(err, &limit) || !limit.Busy || !limit.Memory() {
		t.Errorf("second: %v", err)
	}
	if err := second.Retain(0); err == nil {
		t.Error("the error does not stay")
	}
	if err := first.Retain(2 << 20); !errors.As(err, &limit) || limit.Busy {
		t.Errorf("first: %v", err)
	}
	first.Close()
	second.Close()
	third := open(t, m)
	defer third.Close()
	if err := third.Retain(4 << 20); err != nil {
		t.Errorf("what was closed was not given back: %v", err)
	}
}

// TestMemoryWaits: Open waits while too many transcripts are open, until one is closed or its context ends.
func TestMemoryWaits(t *testing.T) {
	m := transcript.NewMemory(1 << 20)
	var all []*transcript.Account
	for range 4 {
		all = append(all, open(t, m))
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := m.Open(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("one too many: %v", err)
	}
	all[0].Close()
	open(t, m).Close()
}

// TestReadingStops: reading ends soon after the memory is exhausted, not at the end of the input.
func TestReadingStops(t *testing.T) {
	const line = `{"x":1}` + "\n"
	for name, text := range map[string]string{"lines": strings.Repeat(line, 100_000), "one": `"` + strings.Repeat("x", 10<<20)} {
		account := open(t, transcript.NewMemory(1<<20))
		in := strings.NewReader(text)
		records := 0
		err := transcript.ReadLines(transcript.NewInput(bufio.NewReader(in), account), func(int, string, ...any) {}, func(transcript.Record) { records++ })
		var limit *transcript.LimitError
		if !errors.As(err, &limit) || limit.Line == 0 || records > 2000 || in.Len() < len(text)/2 {
			t.Errorf("%s: %d records, %d bytes left of %d, %v", name, records, in.Len(), len(text), err)
		}
		account.Close()
	}
}

// TestEventsAreBounded: a builder keeps no event for which there is no memory, and Finish returns the error.
func TestEventsAreBounded(t *testing.T) {
	account := open(t, transcript.NewMemory(1<<20))
	defer account.Close()
	b := transcript.NewBuilder("h", transcript.NewInput(bufio.NewReader(strings.NewReader("")), account))
	s := b.Session("")
	for i := range 10_000 {
		s.Append(transcript.Entry{ID: fmt.Sprint(i), Body: &eventlog.Message{Role: eventlog.RoleUser, Blocks: []eventlog.Block{eventlog.Text{Text: "x"}}}})
	}
	var limit *transcript.LimitError
	if _, err := b.Finish(nil); !errors.As(err, &limit) || s.Len() > 1000 {
		t.Errorf("%d events, %v", s.Len(), err)
	}
}

// TestWarningsAreBounded: the first warnings are returned; further ones, and further kinds of entries, are
// only counted.
func TestWarningsAreBounded(t *testing.T) {
	b := transcript.NewBuilder("h", nil)
	b.Session("").Append(transcript.Entry{ID: "a", Body: &eventlog.Message{Role: eventlog.RoleUser, Blocks: []eventlog.Block{eventlog.Text{Text: "x"}}}})
	for i := range 5000 {
		b.Warn(i, "%d %s", i, strings.Repeat("w", 10_000))
		b.Skip(fmt.Sprint("kind", i))
	}
	tr, err := b.Finish(nil)
	if err != nil {
		t.Fatal(err)
	}
	size := 0
	for _, w := range tr.Warnings {
		size += len(w.Message)
	}
	last := tr.Warnings[len(tr.Warnings)-2:]
	if size > 512<<10 || !strings.HasSuffix(last[0].Message, "more warnings are left out") || !strings.Contains(last[1].Message, "others 4800") {
		t.Errorf("%d bytes, the last are %.200v", size, last)
	}
}

// TestOneIDManyTimes: giving distinct ids to many entries with the same id takes less than quadratic time.
func TestOneIDManyTimes(t *testing.T) {
	b := transcript.NewBuilder("h", nil)
	s := b.Session("")
	const entries = 20_000
	for range 2 {
		for i := range entries {
			s.Append(transcript.Entry{ID: "a", Body: &eventlog.Message{Role: eventlog.RoleUser, Blocks: []eventlog.Block{eventlog.Text{Text: fmt.Sprint(i)}}}})
		}
	}
	tr, err := b.Finish(nil)
	if err != nil {
		t.Fatal(err)
	}
	if last := tr.Sessions[0].Events[entries-1].ID; len(tr.Sessions[0].Events) != entries || last != "a#20000" || tr.DroppedDuplicates != entries || tr.RenamedIDs != entries-1 {
		t.Errorf("%d events, the last is %s; %d duplicates, %d renamed", len(tr.Sessions[0].Events), last, tr.DroppedDuplicates, tr.RenamedIDs)
	}
}
