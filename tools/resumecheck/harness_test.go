package main

import (
	"slices"
	"testing"

	"github.com/contextd/contextd/internal/harness"
)

// TestHarnesses: every harness that has a writer is checked.
func TestHarnesses(t *testing.T) {
	var names []string
	for _, fresh := range harnesses {
		names = append(names, fresh().Name())
	}
	slices.Sort(names)
	if want := slices.Sorted(slices.Values(harness.Writers())); !slices.Equal(names, want) {
		t.Errorf("%q are checked, and %q have writers", names, want)
	}
}
