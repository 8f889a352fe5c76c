package harness_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/contextd/contextd/internal/harness/harnesstest"
)

// corpusDir holds real sessions next to the repository; they are not part of it.
const corpusDir = "../../../shared/corpus"

// corpusEntry is what the corpus' index says of a file.
type corpusEntry struct {
	File         string `json:"file"`
	Kind         string `json:"kind"`
	Format       string `json:"format"`
	User         int    `json:"user"`
	Assistant    int    `json:"assistant"`
	ToolCalls    int    `json:"tool_calls"`
	ToolResults  int    `json:"tool_results"`
	Errors       int    `json:"errors"`
	Thinking     int    `json:"thinking"`
	Signed       int    `json:"signed_thinking"`
	Compactions  int    `json:"compactions"`
	Images       int    `json:"images"`
	PromptTokens uint64 `json:"recorded_prompt_tokens"`
	CachedTokens uint64 `json:"recorded_cached_tokens"`
	Models       []string
}

// corpus returns the index, or skips the test where there is no corpus.
func corpus(tb testing.TB) []corpusEntry {
	tb.Helper()
	raw, err := os.ReadFile(filepath.Join(corpusDir, "index.json"))
	if err != nil {
		tb.Skipf("SKIPPED: the corpus of real sessions is not next to the repository: %v", err)
	}
	var entries []corpusEntry
	if err := json.Unmarshal(raw, &entries); err != nil {
		tb.Fatal(err)
	}
	return entries
}

func corpusFile(tb testing.TB, name string) []byte {
	tb.Helper()
	if _, err := os.Stat(corpusDir); err != nil {
		tb.Skipf("SKIPPED: the corpus of real sessions is not next to the repository: %v", err)
	}
	return harnesstest.CorpusFile(tb, "../..", name)
}
