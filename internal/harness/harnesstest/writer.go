package harnesstest

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// write writes a transcript twice, the same each time.
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

// plain is a session with its ids replaced by positions: where a format has none,
// the reader makes them from lines, and what is not kept has moved those.
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
