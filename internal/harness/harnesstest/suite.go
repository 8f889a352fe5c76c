// Package harnesstest is the conformance suite for every reader and writer of transcripts.
package harnesstest

import (
	"bytes"
	"maps"
	"slices"
	"testing"

	"github.com/contextd/contextd/internal/harness/transcript"
)

// Subject is the harness under test. If it has no writer, only the reader is tested.
type Subject struct {
	transcript.Harness
	// Fixtures are whole files by name. Each must be readable.
	Fixtures map[string][]byte
	// Lined says that the harness appends lines to its files, so that a file that has grown must give the same events
	// as before, and then more.
	Lined bool
	// Entries splits a file into entries to compare. Nil is LineEntries.
	Entries func(file []byte) ([]Entry, error)
}

// Entry is one entry of a file.
type Entry struct {
	// Kind is the kind under which the harness's NotKept lists it.
	Kind string
	// ID identifies a repeated entry; empty if it has none.
	ID string
	// Value is its JSON, decoded with numbers as json.Number.
	Value any
}

// Run runs the suite. The reader must be deterministic, the log must admit what it returns, growth must only
// add events, and damage must not be fatal. The writer must be deterministic, and its file must equal the
// original entry by entry and be read as the same transcript.
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
