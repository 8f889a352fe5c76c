package codex_test

import (
	"testing"

	"github.com/contextd/contextd/internal/harness/codex"
	"github.com/contextd/contextd/internal/harness/harnesstest"
)

func suite(fixtures map[string][]byte) harnesstest.Subject {
	return harnesstest.Subject{Harness: codex.Harness, Fixtures: fixtures, Lined: true, Entries: entries}
}

func TestConformance(t *testing.T) {
	harnesstest.Run(t, suite(harnesstest.Files(t, "testdata/*.in.jsonl")))
}

func TestCorpusConformance(t *testing.T) {
	harnesstest.Run(t, suite(harnesstest.Corpus(t, "../../..", "codex-rollout")))
}

// entries are the lines of a file. Their kind is made of the types of the record and of its payload.
func entries(file []byte) ([]harnesstest.Entry, error) {
	all, err := harnesstest.LineEntries(file)
	for i := range all {
		m, _ := all[i].Value.(map[string]any)
		payload, _ := m["payload"].(map[string]any)
		if kind, ok := payload["type"].(string); ok {
			all[i].Kind += "/" + kind
		}
		all[i].ID = "" // an item's id is no entry's
	}
	return all, err
}
