package harness_test

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/contextd/contextd/internal/harness"
	eventlog "github.com/contextd/contextd/internal/log"
)

// numbered writes n lines, each by its number.
func numbered(out io.Writer, n int, format string) {
	for i := range n {
		fmt.Fprintf(out, format+"\n", i)
	}
}

// TestManyOfEach reads files with very many of two things that a reader compares. Each takes a second. A reader that
// looked at all of one for each of the other would take minutes.
func TestManyOfEach(t *testing.T) {
	const n = 20_000
	for _, c := range []struct {
		name, harness string
		file          func(io.Writer)
	}{
		{"prompts of the harness that are taken from the queue", "claude", func(out io.Writer) {
			fmt.Fprintln(out, `{"type":"user","uuid":"u","message":{"role":"user","content":"Go."}}`)
			numbered(out, n, `{"type":"queue-operation","operation":"enqueue","content":"{\"task_id\":%d}"}`)
			numbered(out, n, `{"type":"queue-operation","operation":"dequeue","n":%d}`)
		}},
		{"prompts that wait, and messages", "claude", func(out io.Writer) {
			numbered(out, n, `{"type":"queue-operation","operation":"enqueue","content":"prompt %06d"}`)
			numbered(out, n, `{"type":"user","uuid":"u%[1]d","message":{"role":"user","content":"prompt x%05[1]d"}}`)
		}},
		{"messages at the end of a chain that is not kept", "claude", func(out io.Writer) {
			fmt.Fprintln(out, `{"type":"progress","uuid":"p0"}`)
			for i := range n {
				fmt.Fprintf(out, `{"type":"progress","uuid":"p%d","parentUuid":"p%d"}`+"\n", i+1, i)
			}
			numbered(out, n, fmt.Sprintf(`{"type":"user","uuid":"u%%[1]d","parentUuid":"p%d","message":{"role":"user","content":"m%%[1]d"}}`, n))
		}},
		{"results that wait for a chain that is not kept", "claude", func(out io.Writer) {
			fmt.Fprintln(out, `{"type":"user","uuid":"u","message":{"role":"user","content":"Go."}}`)
			numbered(out, n, `{"type":"user","uuid":"r%[1]d","parentUuid":"p0","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"c%[1]d","content":"ok"}]}}`)
			for i := range n {
				fmt.Fprintf(out, `{"type":"progress","uuid":"p%d","parentUuid":"p%d"}`+"\n", i, i+1)
			}
		}},
		{"compactions that keep one of the messages", "claude", func(out io.Writer) {
			numbered(out, n, `{"type":"user","uuid":"u%[1]d","message":{"role":"user","content":"m%[1]d"}}`)
			numbered(out, n, `{"type":"system","subtype":"compact_boundary","uuid":"b%d","compactMetadata":{"trigger":"auto","preservedMessages":{"uuids":["u0"]}}}`)
		}},
		{"compactions that keep a chain without a beginning", "claude", func(out io.Writer) {
			for i := range n {
				fmt.Fprintf(out, `{"type":"user","uuid":"u%d","parentUuid":"u%d","message":{"role":"user","content":"m%d"}}`+"\n", i+1, i, i)
			}
			numbered(out, n, fmt.Sprintf(`{"type":"system","subtype":"compact_boundary","uuid":"b%%d","compactMetadata":{"trigger":"auto","preservedSegment":{"headUuid":"none","tailUuid":"u%d"}}}`, n))
		}},
		{"messages without an item of the model", "codex", func(out io.Writer) {
			numbered(out, n, `{"type":"event_msg","payload":{"type":"user_message","message":"message %06d"}}`)
		}},
		{"compactions after messages of the system", "codex", func(out io.Writer) {
			numbered(out, n, `{"type":"response_item","payload":{"type":"message","role":"developer","content":[{"type":"input_text","text":"m%d"}]}}`)
			numbered(out, n, `{"type":"compacted","payload":{"message":"s%d"}}`)
		}},
		{"compactions that keep the last message", "opencode", func(out io.Writer) {
			fmt.Fprintln(out, `{"info":{"id":"s"},"messages":[{"info":{"id":"first","role":"user"},"parts":[{"type":"text","text":"Go."}]}`)
			numbered(out, n, `,{"info":{"id":"m%[1]d","role":"user"},"parts":[{"type":"text","text":"m%[1]d"}]}`)
			numbered(out, n, fmt.Sprintf(`,{"info":{"id":"c%%d","role":"user"},"parts":[{"type":"compaction","auto":true,"tail_start_id":"m%d"}]}`, n-1))
			fmt.Fprintln(out, `]}`)
		}},
		{"results that are to be pruned later", "opencode", func(out io.Writer) {
			fmt.Fprintln(out, `{"info":{"id":"s"},"messages":[{"info":{"id":"first","role":"user"},"parts":[{"type":"text","text":"Go."}]}`)
			for i := range n {
				fmt.Fprintf(out, `,{"info":{"id":"m%[1]d","role":"assistant","time":{"created":1}},"parts":[{"type":"tool","callID":"c%[1]d","tool":"t","state":{"status":"completed","input":{},"output":"o","time":{"compacted":%[2]d}}}]}`+"\n", i, 9_000_000_000_000-i)
			}
			fmt.Fprintln(out, `]}`)
		}},
		{"messages that are taken back", "gemini", func(out io.Writer) {
			fmt.Fprintln(out, `{"sessionId":"s","kind":"main"}`)
			numbered(out, n, `{"id":"m%[1]d","type":"user","content":"m%[1]d"}`)
			for i := range n {
				fmt.Fprintf(out, `{"id":"x%[1]d","type":"user","content":"x"}`+"\n"+`{"$rewindTo":"x%[1]d"}`+"\n", i)
			}
		}},
		{"subagents and the calls that began them", "chat", func(out io.Writer) {
			numbered(out, n/5, `{"role":"assistant","content":"","tool_calls":[{"id":"t%[1]d","function":{"name":"Agent","arguments":"{\"prompt\":\"p%[1]d\"}"}}]}`)
			numbered(out, n/5, `{"role":"assistant-subagent-a%[1]d","content":"p%[1]d","_metadata":{"original_role":"user"}}`)
		}},
		{"results that are replaced by shorter ones", "dsh", func(out io.Writer) {
			fmt.Fprintln(out, `{"type":"session","version":1,"id":"s"}`)
			numbered(out, n, `{"type":"user/message","seq":%[1]d,"data":{"content":[{"type":"text","text":"m%[1]d"}],"source":{"kind":"user"},"role":"user"},"surfaceOp":"append"}`)
			for i := range n {
				fmt.Fprintf(out, `{"type":"tool/result","seq":%d,"data":{"message":{"role":"user","content":[]}},"surfaceOp":{"op":"replace","start":%[2]d,"end":%[2]d}}`+"\n", n+i, n-1-i)
			}
		}},
		{"messages that are no step back", "antigravity", func(out io.Writer) {
			numbered(out, 4*n, `{"step_index":%[1]d,"source":"USER_EXPLICIT","type":"USER_INPUT","content":"m%[1]d"}`)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var file strings.Builder
			c.file(&file)
			read, err := harness.Read(strings.NewReader(file.String()), c.harness)
			if err != nil || len(read.Sessions) == 0 {
				t.Error(err)
			}
		})
	}
}

// counted counts the bytes that are written to it.
type counted int

func (c *counted) Write(p []byte) (int, error) {
	*c += counted(len(p))
	return len(p), nil
}

// TestKeptAgain: what very many compactions keep is not written again for each of them without a limit.
func TestKeptAgain(t *testing.T) {
	const large, compactions = 1 << 20, 500
	say := func(id, text string) eventlog.Event {
		return eventlog.Event{ID: id, Body: &eventlog.Message{Role: eventlog.RoleUser, Blocks: []eventlog.Block{eventlog.Text{Text: text}}}}
	}
	events := []eventlog.Event{say("first", "Go."), say("large", strings.Repeat("x", large)), say("last", "Go on.")}
	for i := range compactions {
		events = append(events, eventlog.Event{ID: fmt.Sprint("c", i), Body: &eventlog.Compaction{Summary: "s", KeptEventIDs: []string{"large", "large"}}})
	}
	for _, name := range []string{"claude", "codex", "opencode", "pi"} {
		var bytes counted
		report, err := harness.Write(&bytes, harness.Transcript{Sessions: []harness.Session{{Events: events}}}, name, harness.WriteOptions{})
		if err != nil || bytes > 100*large || report.Compactions != compactions {
			t.Errorf("%s: %d bytes, %d compactions, %v", name, bytes, report.Compactions, err)
		}
	}
}
