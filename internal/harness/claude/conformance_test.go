package claude_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/contextd/contextd/internal/harness/claude"
	"github.com/contextd/contextd/internal/harness/harnesstest"
)

func suite(fixtures map[string][]byte) harnesstest.Subject {
	return harnesstest.Subject{Harness: claude.Harness, Fixtures: fixtures, Lined: true, Entries: entries}
}

func TestConformance(t *testing.T) {
	harnesstest.Run(t, suite(harnesstest.Files(t, "testdata/*.in.jsonl")))
}

func TestCorpusConformance(t *testing.T) {
	harnesstest.Run(t, suite(harnesstest.Corpus(t, "../../..", "claude-code")))
}

// entries are the lines of a file. As in the reader, a parent that is not kept is replaced by its nearest
// kept ancestor.
func entries(file []byte) ([]harnesstest.Entry, error) {
	parent := map[string]any{}
	gone := map[string]bool{}
	for l := range bytes.Lines(file) {
		dec := json.NewDecoder(bytes.NewReader(l))
		var r struct {
			Type, UUID string
			ParentUUID any `json:"parentUuid"`
		}
		for dec.Decode(&r) == nil {
			if _, seen := parent[r.UUID]; r.UUID != "" && !seen {
				parent[r.UUID] = r.ParentUUID
				gone[r.UUID] = r.Type == "progress" || r.Type == "file-history-snapshot"
			}
			r.Type, r.UUID, r.ParentUUID = "", "", nil
		}
	}
	all, err := harnesstest.LineEntries(file)
	for _, e := range all {
		m, ok := e.Value.(map[string]any)
		if !ok {
			continue
		}
		p, _ := m["parentUuid"].(string)
		for p != "" && gone[p] {
			m["parentUuid"] = parent[p]
			p, _ = parent[p].(string)
		}
	}
	return all, err
}
