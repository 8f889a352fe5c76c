package harnesstest

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

func testReader(t *testing.T, h Subject, data []byte, tr transcript.Transcript) {
	t.Helper()
	if tr.Harness != h.Name {
		t.Errorf("the transcript says it is of %q instead of %q", tr.Harness, h.Name)
	}
	again, err := h.Read(bytes.NewReader(data))
	if err != nil || !reflect.DeepEqual(tr, again) {
		t.Errorf("read twice, the same bytes give two transcripts: %v", err)
	}
	Admitted(t, tr)
	testDamage(t, h, data)
	if h.Lined {
		testGrowth(t, h, data, tr)
	}
}

// Admitted checks that the log admits a transcript, and that labels are within their limits.
func Admitted(t testing.TB, tr transcript.Transcript) {
	t.Helper()
	for _, s := range tr.Sessions {
		var head eventlog.Head
		if _, _, err := head.Admit(s.Events); err != nil {
			t.Errorf("session %q: %v", s.Suffix, err)
		}
		checkLabels(t, s.Labels)
		ids := map[string]bool{}
		for _, e := range s.Events {
			if e.ID == "" || ids[e.ID] {
				t.Errorf("session %q: the id %q is empty or not unique", s.Suffix, e.ID)
			}
			ids[e.ID] = true
			checkLabels(t, e.Labels)
			if c, ok := e.Body.(*eventlog.Compaction); ok {
				for _, id := range c.KeptEventIDs {
					if !ids[id] {
						t.Errorf("compaction %q keeps %q, which is not before it", e.ID, id)
					}
				}
			}
		}
	}
}

// checkLabels checks that labels are within the limits of the API.
func checkLabels(t testing.TB, labels map[string]string) {
	t.Helper()
	if len(labels) > transcript.MaxLabels {
		t.Errorf("%d labels, and there may be %d", len(labels), transcript.MaxLabels)
	}
	for k, v := range labels {
		key, value := utf8.RuneCountInString(k), utf8.RuneCountInString(v)
		if key == 0 || key > transcript.MaxLabelKey || value > transcript.MaxLabelValue {
			t.Errorf("label %.100q is empty or too long: key of %d characters, value of %d", k, key, value)
		}
	}
}

// testDamage: a truncated file gives a shorter transcript or a *FormatError, and a line that is not JSON
// gives a warning.
func testDamage(t *testing.T, h Subject, data []byte) {
	t.Helper()
	var format *transcript.FormatError
	cuts := []int{1, 3, 5, 7}
	if len(data) > large {
		cuts = cuts[2:3]
	}
	for _, eighth := range cuts {
		cut := data[:len(data)*eighth/8]
		tr, err := h.Read(bytes.NewReader(cut))
		if err != nil && !errors.As(err, &format) {
			t.Errorf("cut off after %d bytes: %v", len(cut), err)
		}
		Admitted(t, tr)
	}
	if !h.Lined {
		return
	}
	lines := bytes.SplitAfter(data, []byte("\n"))
	half := len(lines) / 2
	broken := bytes.Join([][]byte{bytes.Join(lines[:half], nil), []byte("{\"type\":\n"), bytes.Join(lines[half:], nil)}, nil)
	tr, err := h.Read(bytes.NewReader(broken))
	if err != nil {
		t.Fatalf("a line that is no JSON: %v", err)
	}
	for _, w := range tr.Warnings {
		if w.Line == half+1 {
			return
		}
	}
	t.Errorf("line %d is no JSON, and no warning says so", half+1)
}

// large is the size, in bytes, from which on fewer prefixes of a file are read.
const large = 200_000

// growthSteps returns how many prefixes of a file are read; fewer of a large one.
func growthSteps(data []byte) int {
	if len(data) > large {
		return 3
	}
	return 24
}

func testGrowth(t *testing.T, h Subject, data []byte, whole transcript.Transcript) {
	t.Helper()
	lines := bytes.SplitAfter(data, []byte("\n"))
	steps := growthSteps(data)
	for i := 1; i <= steps; i++ {
		n := len(lines) * i / steps
		early, err := h.Read(bytes.NewReader(bytes.Join(lines[:n], nil)))
		if err != nil {
			continue // there is no message yet
		}
		for _, s := range early.Sessions {
			if !begins(s, whole) {
				t.Errorf("the first %d lines give other events than the whole, in session %q", n, s.Suffix)
			}
		}
	}
}

// begins reports whether a session of the whole file begins with the early events. It ignores the last of these if
// that is a compaction, because parts of it may follow in the file.
func begins(early transcript.Session, whole transcript.Transcript) bool {
	events := early.Events
	if _, open := events[len(events)-1].Body.(*eventlog.Compaction); open {
		events = events[:len(events)-1]
	}
	if len(events) == 0 {
		return true
	}
	for _, s := range whole.Sessions {
		if len(s.Events) >= len(events) && reflect.DeepEqual(events, s.Events[:len(events)]) {
			return true
		}
	}
	return false
}

// write writes a transcript twice, and checks that both files are equal.
func write(t testing.TB, h Subject, tr transcript.Transcript) ([]byte, transcript.WriteReport) {
	t.Helper()
	var first, second bytes.Buffer
	report, err := h.Write(&first, tr, transcript.WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Write(&second, tr, transcript.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("written twice, the same transcript gives two files")
	}
	return first.Bytes(), report
}

func testWriter(t *testing.T, h Subject, tr transcript.Transcript) {
	t.Helper()
	file, report := write(t, h, tr)
	again, err := h.Read(bytes.NewReader(file))
	if err != nil {
		t.Fatalf("what was written cannot be read: %v\n%.2000s", err, file)
	}
	if first, second := plain(tr), plain(again); !reflect.DeepEqual(first, second) {
		t.Errorf("what was written reads otherwise (-read first +read again):\n%.4000s", cmp.Diff(first, second))
	}
	if report.Entries == 0 || report.Compactions != tr.Compactions {
		t.Errorf("the report counts %d entries and %d compactions of %d", report.Entries, report.Compactions, tr.Compactions)
	}
	if _, err := h.Write(failing{}, tr, transcript.WriteOptions{}); err == nil {
		t.Error("a file that cannot be written gives no error")
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, fmt.Errorf("disk full") }

// plain returns the sessions with ids replaced by positions. If a format has no ids, the reader derives them from
// lines, which differ in the written file.
func plain(tr transcript.Transcript) []transcript.Session {
	var all []transcript.Session
	for _, s := range tr.Sessions {
		groups, ids := map[string]string{}, map[string]string{}
		events := make([]eventlog.Event, 0, len(s.Events))
		for i, e := range s.Events {
			ids[e.ID] = fmt.Sprintf("event %d", i)
			e.ID = ids[e.ID]
			switch b := e.Body.(type) {
			case *eventlog.Message:
				m := *b
				if m.GroupID != "" {
					if groups[m.GroupID] == "" {
						groups[m.GroupID] = fmt.Sprintf("group %d", i)
					}
					m.GroupID = groups[m.GroupID]
				}
				e.Body = &m
			case *eventlog.Compaction:
				c := *b
				c.KeptEventIDs = nil
				for _, id := range b.KeptEventIDs {
					c.KeptEventIDs = append(c.KeptEventIDs, ids[id])
				}
				e.Body = &c
			}
			if len(e.Labels) == 0 {
				e.Labels = nil
			}
			events = append(events, e)
		}
		s.Events, s.Envelopes = events, slices.Clone(s.Envelopes)
		for i := range s.Envelopes {
			s.Envelopes[i].Event = ids[s.Envelopes[i].Event]
		}
		all = append(all, s)
	}
	return all
}
