package pi_test

import (
	"testing"

	"github.com/contextd/contextd/internal/harness/harnesstest"
	"github.com/contextd/contextd/internal/harness/pi"
)

func suite(fixtures map[string][]byte) harnesstest.Subject {
	return harnesstest.Subject{Harness: pi.Harness, Fixtures: fixtures, Lined: true, Entries: planted}
}

// planted splits a file. As docs/harness/pi.md says, an entry whose parent does not come before it follows
// the entry before.
func planted(file []byte) ([]harnesstest.Entry, error) {
	entries, err := harnesstest.LineEntries(file)
	known, last := map[any]bool{}, any(nil)
	for _, e := range entries {
		m, ok := e.Value.(map[string]any)
		if !ok || m["parentId"] == nil && m["id"] == nil || e.Kind == "session" {
			continue
		}
		if parent, stated := m["parentId"]; stated && parent != nil && !known[parent] {
			m["parentId"] = last
		}
		known[m["id"]], last = true, m["id"]
	}
	return entries, err
}

func TestConformance(t *testing.T) {
	harnesstest.Run(t, suite(harnesstest.Files(t, "testdata/*.in.jsonl")))
}

func TestCorpus(t *testing.T) {
	harnesstest.Run(t, suite(harnesstest.Corpus(t, "../../..", "pi")))
}
