package harness_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/contextd/contextd/internal/harness"
	eventlog "github.com/contextd/contextd/internal/log"
)

// readerOf names the reader of each of the corpus' formats.
var readerOf = map[string]string{
	"claude-code": "claude", "codex-rollout": "codex", "opencode": "opencode", "pi": "pi", "gemini-cli": "gemini",
	"copilot-cli": "copilot", "openhands": "openhands", "mini-swe-agent": "chat", "swe-agent": "chat",
	"tau-bench": "chat", "tau2-bench": "chat", "aider-md": "aider",
}

// TestCorpus reads every real session and compares the result with the counts in the corpus' index, which
// another program took.
func TestCorpus(t *testing.T) {
	differs := map[string]bool{}
	listed, ran := 0, 0
	for _, x := range corpus(t) {
		want, ok := readerOf[x.Format]
		if !ok {
			continue
		}
		listed++
		t.Run(x.File, func(t *testing.T) {
			ran++
			data := corpusFile(t, x.File)
			tr, err := harness.Read(bytes.NewReader(data), "")
			if err != nil {
				t.Fatal(err)
			}
			if tr.Harness != want {
				t.Fatalf("recognised as %s instead of %s", tr.Harness, want)
			}
			checkTranscript(t, tr)
			plain := count(tr.Sessions[0])
			got := explain(x, plain, tr)
			differs[x.Format] = differs[x.Format] || plain != got
			if index := indexCounts(x); got != index {
				t.Errorf("counted, with what is explained:\n%+v\nthe index says:\n%+v", got, index)
			}
			checkBytes(t, x, data, tr)
			again, err := harness.Read(bytes.NewReader(data), want)
			if err != nil || !reflect.DeepEqual(tr, again) {
				t.Errorf("read again, the file gives something else: %v", err)
			}
		})
	}
	if ran == listed { // not a part of them by -run
		checkExplained(t, differs)
	}
}

// TestCorpusOtherFiles: what is no session is refused, not misread.
func TestCorpusOtherFiles(t *testing.T) {
	for _, x := range corpus(t) {
		if _, ok := readerOf[x.Format]; ok {
			continue
		}
		if tr, err := harness.Read(bytes.NewReader(corpusFile(t, x.File)), ""); err == nil {
			t.Errorf("%s was read as %s", x.File, tr.Harness)
		}
	}
}

// TestCorpusGrowth: a file that has grown since it was read gives the events of before and then more, so that
// it can be imported again.
func TestCorpusGrowth(t *testing.T) {
	lined := map[string]bool{"claude": true, "codex": true, "pi": true, "copilot": true, "aider": true}
	for _, x := range corpus(t) {
		name := readerOf[x.Format]
		if !lined[name] {
			continue
		}
		data := corpusFile(t, x.File)
		whole, err := harness.Read(bytes.NewReader(data), name)
		if err != nil {
			t.Fatal(err)
		}
		lines := bytes.SplitAfter(data, []byte("\n"))
		for _, part := range []int{len(lines) / 3, len(lines) / 2, len(lines) - 2} {
			early, err := harness.Read(bytes.NewReader(bytes.Join(lines[:part], nil)), name)
			if err != nil || part < 10 {
				continue
			}
			for i, s := range early.Sessions {
				// The summary of a compaction at the very end may not be written yet.
				n := len(s.Events) - 1
				if !reflect.DeepEqual(s.Events[:n], whole.Sessions[i].Events[:n]) {
					t.Errorf("%s: the first %d lines give other events than the whole", x.File, part)
				}
			}
		}
	}
}

// counts are what the index and a transcript have in common.
type counts struct {
	User, Assistant, Calls, Results, Errors, Thinking, Signed, Compactions, Images int
	Prompt, Cached                                                                 uint64
}

func indexCounts(x corpusEntry) counts {
	return counts{
		User: x.User, Assistant: x.Assistant, Calls: x.ToolCalls, Results: x.ToolResults, Errors: x.Errors,
		Thinking: x.Thinking, Signed: x.Signed, Compactions: x.Compactions, Images: x.Images,
		Prompt: x.PromptTokens, Cached: x.CachedTokens,
	}
}

func count(s harness.Session) counts {
	var c counts
	usage := map[string][2]uint64{}
	for _, e := range s.Events {
		key := e.ID
		switch b := e.Body.(type) {
		case *eventlog.Compaction:
			c.Compactions++
		case *eventlog.Message:
			switch b.Role {
			case eventlog.RoleUser:
				c.User++
			case eventlog.RoleAssistant:
				c.Assistant++
				if b.GroupID != "" {
					key = b.GroupID
				}
			}
			c.blocks(b.Blocks)
		}
		if prompt, err := strconv.ParseUint(e.Labels["usage.prompt_tokens"], 10, 64); err == nil {
			cached, _ := strconv.ParseUint(e.Labels["usage.cache_read_tokens"], 10, 64)
			usage[key] = [2]uint64{prompt, cached}
		}
	}
	for _, u := range usage {
		c.Prompt += u[0]
		c.Cached += u[1]
	}
	return c
}

func (c *counts) blocks(blocks []eventlog.Block) {
	for _, b := range blocks {
		switch b := b.(type) {
		case eventlog.ToolCall:
			c.Calls++
		case eventlog.ToolResult:
			c.Results++
			if b.IsError {
				c.Errors++
			}
			c.blocks(b.Content)
		case eventlog.Thinking:
			c.Thinking++
			if b.Signature != "" && b.EncryptedContent == "" {
				c.Signed++
			}
		case eventlog.Media:
			c.Images++
		}
	}
}

// customs counts the custom events of a type.
func customs(s harness.Session, kind string) int {
	return len(customsOf(s, kind))
}

func customsOf(s harness.Session, kind string) []string {
	var found []string
	for _, e := range s.Events {
		if c, ok := e.Body.(*eventlog.Custom); ok && strings.HasSuffix(c.Type, "."+kind) {
			found = append(found, c.JSON)
		}
	}
	return found
}

// checkBytes checks that arguments and signatures have the bytes of the file, where the format writes them
// without escapes and without spaces between tokens.
func checkBytes(t *testing.T, x corpusEntry, data []byte, tr harness.Transcript) {
	t.Helper()
	var models []string
	for _, e := range tr.Sessions[0].Events {
		m, ok := e.Body.(*eventlog.Message)
		if !ok {
			continue
		}
		if m.Model != "" && !slices.Contains(models, m.Model) {
			models = append(models, m.Model)
		}
		for _, b := range m.Blocks {
			switch b := b.(type) {
			case eventlog.ToolCall:
				plain := x.Format == "claude-code" || x.Format == "pi" || x.Format == "copilot-cli"
				if plain && !bytes.Contains(data, []byte(b.Arguments)) {
					t.Errorf("arguments of %s do not stand in the file: %.200s", b.CallID, b.Arguments)
				}
			case eventlog.Thinking:
				if !bytes.Contains(data, []byte(b.Signature)) || !bytes.Contains(data, []byte(b.EncryptedContent)) {
					t.Errorf("a signature does not stand in the file: %.100s", b.Signature+b.EncryptedContent)
				}
			}
		}
	}
	for _, m := range models {
		if len(x.Models) > 0 && !slices.Contains(x.Models, m) && x.Format != "mini-swe-agent" && x.Format != "openhands" {
			t.Errorf("model %q is not among those of the index, %q", m, x.Models)
		}
	}
}

// toolMessage is what explain needs of a custom event that holds a chat message.
type toolMessage struct {
	Role      string            `json:"role"`
	Content   *string           `json:"content"`
	ToolCalls []json.RawMessage `json:"tool_calls"`
}
