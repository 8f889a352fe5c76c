package openhands_test

import (
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contextd/contextd/internal/harness/openhands"
)

// TestBranches: the messages of branches that nothing follows count as abandoned.
func TestBranches(t *testing.T) {
	file, err := os.Open("testdata/tree.in.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	tr, err := openhands.Harness.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	events := tr.Sessions[0].Events
	for name, tc := range map[string]struct {
		until string
		want  []string
	}{
		"before the step back": {"m4", nil},
		"after it":             {"o1", []string{"m3", "m4"}},
		"from the root":        {"m6", []string{"a1", "a2", "m1", "m2", "m3", "m4", "m5", "o1", "o2", "p2", "p2/result", "p3", "p3/result", "s1"}},
	} {
		n := 0
		for events[n].ID != tc.until {
			n++
		}
		var gone []string
		for id := range openhands.Harness.Branches.Left(events[:n+1]) {
			gone = append(gone, id)
		}
		slices.Sort(gone)
		if diff := cmp.Diff(tc.want, gone); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
