package opencode_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/contextd/contextd/internal/harness/harnesstest"
	"github.com/contextd/contextd/internal/harness/opencode"
)

func suite(fixtures map[string][]byte) harnesstest.Subject {
	return harnesstest.Subject{Harness: opencode.Harness, Fixtures: fixtures, Entries: entries}
}

func TestConformance(t *testing.T) {
	harnesstest.Run(t, suite(harnesstest.Files(t, "testdata/*.in.json")))
}

func TestCorpus(t *testing.T) {
	harnesstest.Run(t, suite(harnesstest.Corpus(t, "../../..", "opencode")))
}

// entries splits a file into its info, its messages by role, and its other members.
func entries(file []byte) ([]harnesstest.Entry, error) {
	dec := json.NewDecoder(bytes.NewReader(file))
	dec.UseNumber()
	var document map[string]any
	if err := dec.Decode(&document); err != nil {
		return nil, fmt.Errorf("decode session: %w", err)
	}
	all := []harnesstest.Entry{{Kind: "session", Value: document["info"]}}
	messages, _ := document["messages"].([]any)
	for _, m := range messages {
		e := harnesstest.Entry{Value: m}
		message, _ := m.(map[string]any)
		info, _ := message["info"].(map[string]any)
		role, _ := info["role"].(string)
		e.Kind = "message/" + role
		if id, _ := info["id"].(string); id != "REDACTED" { // which replaces many
			e.ID = id
		}
		all = append(all, e)
	}
	for name, value := range document {
		if name != "info" && name != "messages" {
			all = append(all, harnesstest.Entry{Kind: "member/" + name, Value: value})
		}
	}
	return all, nil
}
