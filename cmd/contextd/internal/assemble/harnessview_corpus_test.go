package assemble_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/contextd/contextd/internal/harness"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/memlog"
)

const corpus = "../../../../../shared/corpus"

// rawBlock is a block as Claude Code and pi write it.
type rawBlock struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type rawMessage struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

// said are the texts of a message, be it a string or blocks.
func (m rawMessage) said() []string {
	var text string
	if json.Unmarshal(m.Content, &text) == nil {
		return []string{text}
	}
	var blocks []rawBlock
	var out []string
	if json.Unmarshal(m.Content, &blocks) == nil {
		for _, b := range blocks {
			if strings.HasSuffix(b.Type, "text") {
				out = append(out, b.Text)
			}
		}
	}
	return out
}

// behindClaude reads a file of Claude Code itself: the last summary and what the user
// and the model said behind it.
func behindClaude(lines [][]byte) (said []string) {
	for _, line := range lines {
		var l struct {
			Type      string
			Summary   bool `json:"isCompactSummary"`
			Sidechain bool `json:"isSidechain"`
			Message   rawMessage
		}
		if json.Unmarshal(line, &l) != nil || l.Sidechain || l.Type != "user" && l.Type != "assistant" {
			continue
		}
		if l.Summary {
			said = nil
		}
		said = append(said, l.Message.said()...)
	}
	return said
}

// behindCodex reads a rollout: the last list that replaced the prompt, what cannot be read
// of it left out, and the messages behind it.
func behindCodex(lines [][]byte) (said []string) {
	for _, line := range lines {
		var l struct {
			Type    string
			Payload struct {
				Type    string
				History []struct {
					Type string
					rawMessage
				} `json:"replacement_history"`
				rawMessage
			}
		}
		if json.Unmarshal(line, &l) != nil {
			continue
		}
		switch {
		case l.Type == "compacted":
			said = nil
			for _, it := range l.Payload.History {
				if it.Type == "message" {
					said = append(said, it.said()...)
				}
			}
		case l.Type == "response_item" && l.Payload.Type == "message":
			said = append(said, l.Payload.said()...)
		}
	}
	return said
}

func isCompaction(e eventlog.Event) bool {
	c, ok := e.Body.(*eventlog.Compaction)
	return ok && len(harness.BoundaryOf(c).Blocks) > 0
}

// Behind the last compaction of every recorded session of Claude Code and Codex, the view
// says what the file itself says: the summary, what was kept and what came since.
func TestHarnessViewOfTheCorpus(t *testing.T) {
	if _, err := os.Stat(corpus); err != nil {
		t.Skip("SKIPPED: no recorded sessions in ../shared/corpus")
	}
	oracles := map[string]func([][]byte) []string{"claude": behindClaude, "codex": behindCodex}
	compared := map[string]int{}
	err := filepath.WalkDir(corpus, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.Contains(path, "json") {
			return err
		}
		data := readCorpusFile(t, path)
		read, err := harness.Read(bytes.NewReader(data), "")
		if err != nil || oracles[read.Harness] == nil || !slices.ContainsFunc(read.Sessions[0].Events, isCompaction) {
			return nil
		}
		compared[read.Harness]++
		store := memlog.New()
		defer store.Close()
		push(t, store, "s", read.Sessions[0].Events...)
		req := harnessRequest()
		req.Budget.MaxTokens = 10_000_000
		got := mustAssemble(t, newEngine(t, store), req)
		want := oracles[read.Harness](splitLines(data))
		var shown []string
		for _, m := range got.Messages {
			if m.Role == eventlog.RoleTool {
				continue
			}
			for _, b := range m.Blocks {
				if text, ok := b.(eventlog.Text); ok {
					shown = append(shown, text.Text)
				}
			}
		}
		if got.Messages[0].Role == eventlog.RoleSystem {
			want = append(want, shown[0]) // the prompt, which a rollout has in its head
		}
		missing, extra := differenceOf(want, shown), differenceOf(shown, want)
		if len(missing)+len(extra) > 0 {
			t.Errorf("%s: %d texts are missing and %d too many of %d:\nmissing %.300q\nextra %.300q", path, len(missing), len(extra), len(want), missing, extra)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range oracles {
		if compared[name] == 0 {
			t.Errorf("no session of %s has a compaction", name)
		}
	}
}

// differenceOf are the texts of a that are not in b, counted.
func differenceOf(a, b []string) []string {
	left := map[string]int{}
	for _, s := range b {
		left[strings.TrimSpace(s)]++
	}
	var out []string
	for _, s := range a {
		if s = strings.TrimSpace(s); s == "" {
			continue
		}
		if left[s]--; left[s] < 0 {
			out = append(out, s)
		}
	}
	return out
}

func splitLines(data []byte) [][]byte {
	return bytes.Split(data, []byte("\n"))
}

func readCorpusFile(t *testing.T, path string) []byte {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var in io.Reader = bufio.NewReader(f)
	if strings.HasSuffix(path, ".gz") {
		if in, err = gzip.NewReader(in); err != nil {
			t.Fatal(err)
		}
	}
	data, err := io.ReadAll(in)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
