package reachability

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/contextd/contextd/internal/harness"
	"github.com/contextd/contextd/internal/harness/harnesstest"
	eventlog "github.com/contextd/contextd/internal/log"
)

// corpusDir has real sessions. It is next to the repository, not part of it.
const corpusDir = "../../../shared/corpus"

// recorded is one session of the corpus.
type recorded struct {
	name   string
	events []eventlog.Event
}

// sessions reads every session that a reader supports, or skips the test if there is no corpus.
func sessions(tb testing.TB) []recorded {
	tb.Helper()
	raw, err := os.ReadFile(filepath.Join(corpusDir, "index.json"))
	if err != nil {
		tb.Skipf("SKIPPED: the corpus of real sessions is not next to the repository: %v", err)
	}
	var entries []struct{ File, Kind string }
	if err := json.Unmarshal(raw, &entries); err != nil {
		tb.Fatal(err)
	}
	var all []recorded
	for _, x := range entries {
		transcript, err := harness.Read(bytes.NewReader(harnesstest.CorpusFile(tb, "../..", x.File)), "")
		if err != nil {
			continue // not a session
		}
		for _, s := range transcript.Sessions {
			_, events, err := eventlog.Head{}.Admit(s.Events)
			if err != nil {
				tb.Fatalf("%s: %v", x.File, err)
			}
			all = append(all, recorded{x.File + s.Suffix, events})
		}
	}
	return all
}
