package harness_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/contextd/contextd/internal/harness"
	"github.com/contextd/contextd/internal/harness/harnesstest"
	eventlog "github.com/contextd/contextd/internal/log"
)

const theSummary = "The parser was read, and it fails."

// beginnings are transcripts that begin with a compaction.
var beginnings = map[string]string{
	"claude": `{"type":"mode","mode":"normal","sessionId":"s"}
{"type":"user","uuid":"l","sessionId":"s","isMeta":true,"message":{"role":"user","content":"<local-command-caveat>x</local-command-caveat>"}}
{"parentUuid":null,"logicalParentUuid":"gone","type":"system","subtype":"compact_boundary","uuid":"c","sessionId":"s","compactMetadata":{"trigger":"auto","preTokens":9,"preservedMessages":{"anchorUuid":"s1","uuids":["gone"]}}}
{"parentUuid":"c","type":"user","uuid":"s1","sessionId":"s","isCompactSummary":true,"message":{"role":"user","content":"The parser was read, and it fails."}}
{"parentUuid":"s1","type":"user","uuid":"u","sessionId":"s","message":{"role":"user","content":"Mend it."}}
{"parentUuid":"u","type":"assistant","uuid":"a","sessionId":"s","message":{"role":"assistant","id":"m","model":"x","content":[{"type":"text","text":"Mended."}]}}
`,
	"claude without a boundary": `{"parentUuid":null,"type":"user","uuid":"s1","sessionId":"s","isCompactSummary":true,"message":{"role":"user","content":"The parser was read, and it fails."}}
{"parentUuid":"s1","type":"user","uuid":"u","sessionId":"s","message":{"role":"user","content":"Mend it."}}
{"parentUuid":"u","type":"assistant","uuid":"a","sessionId":"s","message":{"role":"assistant","id":"m","model":"x","content":[{"type":"text","text":"Mended."}]}}
`,
	"codex": `{"timestamp":"2026-06-26T12:24:12.748Z","type":"session_meta","payload":{"id":"s","cwd":"/src","base_instructions":{"text":"You code."}}}
{"timestamp":"2026-06-26T12:24:13.000Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"<environment_context>x</environment_context>"}]}}
{"timestamp":"2026-06-26T12:24:14.000Z","type":"compacted","payload":{"message":"The parser was read, and it fails.","replacement_history":[{"type":"message","role":"user","content":[{"type":"input_text","text":"<environment_context>x</environment_context>"}]},{"type":"message","role":"user","content":[{"type":"input_text","text":"Read the parser."}]},{"type":"message","role":"user","content":[{"type":"input_text","text":"The parser was read, and it fails."}]}]}}
{"timestamp":"2026-06-26T12:24:15.000Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"Mend it."}]}}
{"timestamp":"2026-06-26T12:24:16.000Z","type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Mended."}]}}
`,
	"opencode": `{"info":{"id":"s","version":"1","projectID":"p","directory":"/src"},"messages":[
{"info":{"id":"m1","role":"user","sessionID":"s","time":{"created":1}},"parts":[{"id":"p1","type":"compaction","auto":true,"tail_start_id":"gone"}]},
{"info":{"id":"m2","role":"assistant","sessionID":"s","summary":true,"mode":"compaction","time":{"created":2}},"parts":[{"id":"p2","type":"text","text":"The parser was read, and it fails."}]},
{"info":{"id":"m3","role":"user","sessionID":"s","time":{"created":3}},"parts":[{"id":"p3","type":"text","text":"Mend it."}]},
{"info":{"id":"m4","role":"assistant","sessionID":"s","time":{"created":4}},"parts":[{"id":"p4","type":"step-start"},{"id":"p5","type":"text","text":"Mended."}]}]}`,
	"pi": `{"type":"session","id":"s","version":3,"timestamp":"2026-06-26T12:24:12.748Z","cwd":"/src"}
{"type":"compaction","id":"c","parentId":null,"timestamp":"2026-06-26T12:24:13.000Z","summary":"The parser was read, and it fails.","firstKeptEntryId":"gone","tokensBefore":9}
{"type":"message","id":"u","parentId":"c","timestamp":"2026-06-26T12:24:14.000Z","message":{"role":"user","content":"Mend it."}}
{"type":"message","id":"a","parentId":"u","timestamp":"2026-06-26T12:24:15.000Z","message":{"role":"assistant","model":"x","content":[{"type":"text","text":"Mended."}],"stopReason":"stop"}}
`,
	"copilot": `{"type":"session.start","id":"1","timestamp":"2026-06-26T12:24:12.748Z","data":{"sessionId":"s"}}
{"type":"session.compaction_complete","id":"2","timestamp":"2026-06-26T12:24:13.000Z","data":{"success":true,"summaryContent":"The parser was read, and it fails."}}
{"type":"user.message","id":"3","timestamp":"2026-06-26T12:24:14.000Z","data":{"content":"Mend it."}}
{"type":"assistant.message","id":"4","timestamp":"2026-06-26T12:24:15.000Z","data":{"messageId":"m","content":"Mended."}}
`,
	"openhands": `{"instance_id":"s","instruction":"x","test_result":{},"history":[{"id":1,"source":"agent","action":"condensation","args":{"summary":"The parser was read, and it fails."}},{"id":2,"source":"user","action":"message","args":{"content":"Mend it."}},{"id":3,"source":"agent","action":"message","args":{"content":"Mended."}}]}
`,
}

// spoken are the messages of users and the model, with a "!" before those, and before their blocks, that no human wrote.
func spoken(s harness.Session) []string {
	var all []string
	for _, e := range s.Events {
		m, ok := e.Body.(*eventlog.Message)
		if !ok || m.Role == eventlog.RoleSystem {
			continue
		}
		text := ""
		for i, b := range m.Blocks {
			t, _ := b.(eventlog.Text)
			if e.InjectedBlock(i) {
				text += "!"
			}
			text += t.Text
		}
		if e.Injected() {
			text = "!" + text
		}
		all = append(all, text)
	}
	return all
}

// TestBeginsCompacted: the summary at the beginning of a transcript becomes an injected message. It is in the
// files written for all other harnesses, and the harness's own file is written unchanged.
func TestBeginsCompacted(t *testing.T) {
	for name, file := range beginnings {
		t.Run(name, func(t *testing.T) {
			own, _, _ := strings.Cut(name, " ")
			tr, err := harness.Read(strings.NewReader(file), own)
			if err != nil {
				t.Fatal(err)
			}
			harnesstest.Admitted(t, tr)
			said := spoken(tr.Sessions[0])
			tail := said[len(said)-3:]
			if !strings.Contains(tail[0], theSummary) || tail[0][0] != '!' || tail[1] != "Mend it." || tail[2] != "Mended." {
				t.Errorf("it says %q", said)
			}
			if name == "codex" && !slices.Contains(said, "Read the parser.") {
				t.Errorf("what the compaction left is not in %q", said)
			}
			if gone := strings.Contains(file, "gone"); gone != warned(tr, "not in the file") {
				t.Errorf("what it kept and the file lacks is warned of: %v", tr.Warnings)
			}
			var written bytes.Buffer
			if slices.Contains(harness.Writers(), own) {
				if _, err := harness.Write(&written, tr, own, harness.WriteOptions{}); err != nil {
					t.Fatal(err)
				}
				again, err := harness.Read(bytes.NewReader(written.Bytes()), own)
				if err != nil {
					t.Fatal(err)
				}
				if got := spoken(again.Sessions[0]); !slices.Equal(got, said) {
					t.Errorf("written again it says %q", got)
				}
				if n := bytes.Count(written.Bytes(), []byte(theSummary)); n != strings.Count(file, theSummary) {
					t.Errorf("the summary is written %d times", n)
				}
			}
			for _, other := range harness.Writers() {
				if other == own {
					continue
				}
				there := send(t, name, tr, other)
				if got := spoken(there.Sessions[0]); strings.Count(strings.Join(got, "\n"), theSummary) != 1 || got[len(got)-1] != "Mended." {
					t.Errorf("%s says %q", other, got)
				}
			}
		})
	}
}

func warned(tr harness.Transcript, of string) bool {
	return slices.ContainsFunc(tr.Warnings, func(w harness.Warning) bool { return strings.Contains(w.Message, of) })
}

// TestBeginsCompactedAndCompacted: a later compaction that keeps the first summary has its text, whatever the
// harness.
func TestBeginsCompactedAndCompacted(t *testing.T) {
	tr, err := harness.Read(strings.NewReader(beginnings["claude"]), "claude")
	if err != nil {
		t.Fatal(err)
	}
	s := &tr.Sessions[0]
	var kept []string
	for _, e := range s.Events {
		if _, ok := e.Body.(*eventlog.Message); ok && e.Labels["harness.summary"] == "true" {
			kept = append(kept, e.ID)
		}
	}
	s.Events = append(s.Events, eventlog.Event{ID: "later", Body: &eventlog.Compaction{Summary: "It was mended.", KeptEventIDs: kept}})
	for _, other := range harness.Writers() {
		there := send(t, "later", tr, other)
		events := there.Sessions[0].Events
		i := slices.IndexFunc(events, func(e eventlog.Event) bool {
			c, ok := e.Body.(*eventlog.Compaction)
			return ok && strings.Contains(c.Summary, "It was mended.")
		})
		if i < 0 || !strings.Contains(events[i].Body.(*eventlog.Compaction).Summary, theSummary) {
			t.Errorf("%s has no compaction with both", other)
		}
	}
}
