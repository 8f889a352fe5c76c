package assemble_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/contextd/contextd/internal/harness"
	"github.com/contextd/contextd/internal/harness/harnesstest"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/memlog"
)

// rawBlock is a block as Claude Code and pi write it.
type rawBlock struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type rawMessage struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

// said are the texts of a message, whether a string or blocks.
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

// followed matches the versions of Claude Code that wrap a message in "The user sent the following
// message".
var followed = regexp.MustCompile(`^(2\.0\.|2\.1\.1?\d$)`)

// behindClaude reads a file of Claude Code itself: the last summary and what the user
// and the model said after it, with what the user said while the model worked and the words that
// the version, of which recorded sessions have two kinds, put around it.
func behindClaude(lines [][]byte) (said []string) {
	var queue []string
	around := "%s"
	for _, line := range lines {
		var l struct {
			Type               string
			Summary            bool `json:"isCompactSummary"`
			Sidechain          bool `json:"isSidechain"`
			Message            rawMessage
			Operation, Content string
			Version            string
		}
		if json.Unmarshal(line, &l) != nil || l.Sidechain || l.Type != "user" && l.Type != "assistant" && l.Type != "queue-operation" {
			continue
		}
		if followed.MatchString(l.Version) {
			around = "<system-reminder>\nThe user sent the following message:\n%s\n\nPlease address this message and continue with your tasks.\n</system-reminder>"
		} else if l.Version != "" {
			around = "<system-reminder>\nThe user sent a new message while you were working:\n%s\n\n" +
				"IMPORTANT: After completing your current task, you MUST address the user's message above. Do not ignore it.\n</system-reminder>"
		}
		switch {
		case l.Operation == "enqueue" && !strings.HasPrefix(l.Content, "{"): // else of a task
			queue = append(queue, l.Content)
		case l.Operation == "remove" && len(queue) > 0:
			said = append(said, fmt.Sprintf(around, queue[0]))
			fallthrough
		case l.Operation == "dequeue" && len(queue) > 0:
			queue = queue[1:]
		}
		if l.Summary {
			said = nil
		}
		said = append(said, l.Message.said()...)
	}
	return said
}

// behindCodex reads a rollout: the last list that replaced the prompt, what cannot be read
// of it left out, and the messages after it.
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

// After the last compaction of every recorded session of Claude Code and Codex, the view
// says what the file itself says: the summary, what was kept and what came since.
func TestCorpusHarnessView(t *testing.T) {
	for format, oracle := range map[string]func([][]byte) []string{"claude-code": behindClaude, "codex-rollout": behindCodex} {
		compared := 0
		for name, data := range harnesstest.Corpus(t, "../..", format) {
			read, err := harness.Read(bytes.NewReader(data), "")
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if slices.ContainsFunc(read.Sessions[0].Events, isCompaction) {
				compared++
				compareView(t, name, read.Sessions[0].Events, oracle(splitLines(data)))
			}
		}
		if compared == 0 {
			t.Errorf("no session of %s has a compaction", format)
		}
	}
}

// compareView holds the texts that the view of a log shows to those it should.
func compareView(t *testing.T, name string, events []eventlog.Event, want []string) {
	t.Helper()
	store := memlog.New()
	defer store.Close()
	push(t, store, "s", events...)
	req := harnessRequest()
	req.Budget.MaxTokens = 10_000_000
	got := mustAssemble(t, newEngine(t, store), req)
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
		t.Errorf("%s: %d texts are missing and %d too many of %d:\nmissing %.300q\nextra %.300q", name, len(missing), len(extra), len(want), missing, extra)
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
