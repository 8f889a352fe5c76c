package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/contextd/contextd/internal/evaluate"
)

// TestHashFileFindsTheFirstChangedStep: a second run is compared with the first: each step, including
// refusals, and the number of steps.
func TestHashFileFindsTheFirstChangedStep(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hashes")
	s := &session{Session: &evaluate.Session{File: "corpus/a/b.jsonl"}}
	first, second, third := strings.Repeat("1", 64), strings.Repeat("2", 64), strings.Repeat("3", 64)
	run := func(hashes ...string) int {
		t.Helper()
		h, err := openHashFile(path, "corpus")
		if err != nil {
			t.Fatal(err)
		}
		changed, err := h.hold(s, nil, "contextd", 8192, hashes)
		if err != nil {
			t.Fatal(err)
		}
		if err := h.close(); err != nil {
			t.Fatal(err)
		}
		return changed
	}
	if got := run(first, "", second); got != -1 {
		t.Fatalf("a run that the file does not know changed at step %d", got)
	}
	for _, c := range []struct {
		hashes []string
		want   int
	}{
		{[]string{first, "", second}, -1},
		{[]string{first, "", third}, 2},
		{[]string{first, third, second}, 1},
		{[]string{first, ""}, 2},
		{[]string{first, "", second, third}, 3},
	} {
		if got := run(c.hashes...); got != c.want {
			t.Errorf("%v: changed at step %d, want %d", c.hashes, got, c.want)
		}
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if want := "a/b.jsonl\t\tdefault\tcontextd\t8192\t111111111111 refused 222222222222\n"; string(data) != want {
		t.Errorf("the file holds %q, want %q", data, want)
	}
}
