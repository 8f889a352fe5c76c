// Package harnesstest is the conformance suite of harnesses: what every reader and
// every writer of transcripts must hold to.
package harnesstest

import (
	"bytes"
	"maps"
	"slices"
	"testing"

	"github.com/contextd/contextd/internal/harness/transcript"
)

// Subject is what the suite is run on. Where it has no writer, the reader alone is tested.
type Subject struct {
	transcript.Harness
	// Fixtures are whole files by name. Each must be readable.
	Fixtures map[string][]byte
	// Lined says that the harness appends to its files line by line, so that a file
	// that grew must give the same events with more after them.
	Lined bool
	// Entries splits a file into what is compared one by one. Nil is LineEntries with
	// the member "type" as kind and "uuid" or "id" as id.
	Entries func(file []byte) ([]Entry, error)
}

// Entry is one entry of a file.
type Entry struct {
	// Kind is what the harness's NotKept names it by.
	Kind string
	// ID identifies a repeated entry; empty if it has none.
	ID string
	// Value is its JSON, decoded with numbers as json.Number.
	Value any
}

// Run runs the suite: the reader is deterministic, the log admits what it makes,
// growth only adds, nothing is fatal that is damage; the writer is deterministic,
// what it writes reads as what was read, and equals the original entry by entry.
func Run(t *testing.T, h Subject) {
	t.Helper()
	if len(h.Fixtures) == 0 {
		t.Fatal("no fixtures")
	}
	for _, name := range slices.Sorted(maps.Keys(h.Fixtures)) {
		data := h.Fixtures[name]
		t.Run(name, func(t *testing.T) {
			tr, err := h.Read(bytes.NewReader(data))
			if err != nil {
				t.Fatal(err)
			}
			t.Run("reader", func(t *testing.T) { testReader(t, h, data, tr) })
			if h.Write == nil {
				return
			}
			t.Run("writer", func(t *testing.T) { testWriter(t, h, tr) })
			t.Run("entries", func(t *testing.T) { testEntries(t, h, data, tr) })
		})
	}
}
