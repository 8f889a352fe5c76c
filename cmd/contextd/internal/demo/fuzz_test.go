package demo

import (
	"bytes"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

func FuzzReadSession(f *testing.F) {
	first, _, _ := bytes.Cut(bundled, []byte("\n"))
	f.Add(first)
	f.Add([]byte("\n{}\n \n{}"))
	f.Add([]byte(`{"message":{"role":"ROLE_USER"}}` + "\r\n"))
	f.Add([]byte(`{"message":`))
	f.Fuzz(func(t *testing.T, text []byte) {
		events, err := readSession(bytes.NewReader(text))
		if (len(events) == 0) == (err == nil) {
			t.Fatalf("%d events and %v", len(events), err)
		}
		// What was read can be written and read again.
		var lines bytes.Buffer
		for _, e := range events {
			line, err := protojson.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			lines.Write(append(line, '\n'))
		}
		if err != nil {
			return
		}
		again, err := readSession(&lines)
		if err != nil || len(again) != len(events) {
			t.Fatalf("read again: %d of %d events, %v", len(again), len(events), err)
		}
		for i := range events {
			if !proto.Equal(again[i], events[i]) {
				t.Errorf("event %d is read as %v, not %v", i, again[i], events[i])
			}
		}
		steps, rest := split(events)
		n := len(rest)
		for _, s := range steps {
			n += len(s.events)
		}
		if n != len(events) {
			t.Errorf("split into %d of %d events", n, len(events))
		}
	})
}

func FuzzLedger(f *testing.F) {
	f.Add("[contextd]\n\nEarlier tool calls (3), oldest first:\nbash ×2\nls a=b → ok ctx:1.0\n")
	f.Add("\nEarlier tool calls (")
	f.Add("\nEarlier tool calls (1\nx ×99999999999999999999 → ok ×99999999999999999999")
	f.Fuzz(func(t *testing.T, digest string) {
		calls, pointers := ledgerOf(digest)
		if len(pointers) > strings.Count(digest, "\n") || calls < len(pointers) && !strings.Contains(digest, "×") {
			t.Errorf("%d calls and %d pointers in %q", calls, len(pointers), digest)
		}
	})
}
