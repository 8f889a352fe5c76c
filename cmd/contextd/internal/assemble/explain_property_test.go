package assemble_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/contextd/contextd/cmd/contextd/internal/assemble"
	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/memlog"
	"github.com/contextd/contextd/internal/projection"
	"github.com/contextd/contextd/internal/render"
)

// words are what generated sessions are made of; some need escapes.
var words = []string{
	"leak_in_pool", "pkg/mod7/handler.go", "tab\there", `a "quoted" word`, "naïve", "日本語", "E4217", "<b>", "two\nlines", "evicted",
	"the same as before ", strings.Repeat("filler that takes room. ", 40), strings.Repeat("func step7(ctx) error\n", 60),
}

func genWords() *rapid.Generator[string] {
	return rapid.Map(rapid.SliceOfN(rapid.SampledFrom(words), 1, 5), func(w []string) string { return strings.Join(w, " ") })
}

// genStretch draws what happens next in a session: one turn, and what comes between
// turns.
func genStretch(i int) *rapid.Generator[[]eventlog.Event] {
	return rapid.Custom(func(t *rapid.T) []eventlog.Event {
		var out []eventlog.Event
		add := func(body eventlog.Body) {
			out = append(out, eventlog.Event{ID: fmt.Sprintf("%d-%d", i, len(out)), Body: body})
		}
		say := func(role eventlog.Role, blocks ...eventlog.Block) {
			add(&eventlog.Message{Role: role, Blocks: blocks, Pinned: rapid.IntRange(0, 30).Draw(t, "pinned") == 0})
		}
		if i == 0 || rapid.IntRange(0, 4).Draw(t, "user") == 0 {
			say(eventlog.RoleUser, eventlog.Text{Text: genWords().Draw(t, "said")})
		}
		switch rapid.IntRange(0, 6).Draw(t, "beside") {
		case 0:
			r := &eventlog.Reminder{Body: genWords().Draw(t, "reminder"), PreserveOnCompact: rapid.Bool().Draw(t, "preserve")}
			r.DedupeKey = rapid.SampledFrom([]string{"", "k"}).Draw(t, "key")
			if rapid.Bool().Draw(t, "mortal") {
				ttl := rapid.Uint32Range(1, 4).Draw(t, "ttl")
				r.TTLTurns = &ttl
			}
			add(r)
		case 1:
			add(&eventlog.Custom{Type: "note", JSON: inJSON(t, genWords().Draw(t, "note"))})
		case 2:
			c := &eventlog.Compaction{Summary: genWords().Draw(t, "boundary")}
			for range rapid.IntRange(0, 3).Draw(t, "keeps") {
				// Not all of these are there: such an id keeps nothing.
				c.KeptEventIDs = append(c.KeptEventIDs, fmt.Sprintf("%d-%d", rapid.IntRange(0, i).Draw(t, "stretch"), rapid.IntRange(0, 3).Draw(t, "kept")))
			}
			add(c)
		}
		blocks := []eventlog.Block{eventlog.Text{Text: genWords().Draw(t, "answer")}}
		if rapid.Bool().Draw(t, "thinks") {
			blocks = append([]eventlog.Block{eventlog.Thinking{Text: genWords().Draw(t, "thought")}}, blocks...)
		}
		var results []eventlog.Block
		for c := range rapid.IntRange(0, 2).Draw(t, "calls") {
			id := fmt.Sprintf("call_%d_%d", i, c)
			blocks = append(blocks, eventlog.ToolCall{CallID: id, Name: "read", Arguments: inJSON(t, genWords().Draw(t, "argument"))})
			result := eventlog.ToolResult{CallID: id, IsError: rapid.IntRange(0, 5).Draw(t, "fails") == 0}
			for range rapid.IntRange(1, 2).Draw(t, "parts") {
				result.Content = append(result.Content, eventlog.Text{Text: genWords().Draw(t, "result")})
			}
			if rapid.IntRange(0, 9).Draw(t, "interrupted") > 0 {
				results = append(results, result)
			}
		}
		say(eventlog.RoleAssistant, blocks...)
		if len(results) > 0 {
			say(eventlog.RoleTool, results...)
		}
		return out
	})
}

// inJSON puts a string in an object, with or without whitespace.
func inJSON(t *rapid.T, s string) string {
	object := map[string]any{"path": s, "depth": 1.0}
	out, err := json.Marshal(object)
	if rapid.Bool().Draw(t, "spaced") {
		out, err = json.MarshalIndent(object, "", "  ")
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// sentTexts reads the texts out of blocks as they were sent.
func sentTexts(t *rapid.T, raw json.RawMessage) []string {
	var blocks []map[string]struct {
		Text      string          `json:"text"`
		CallID    string          `json:"call_id"`
		Name      string          `json:"name"`
		Tool      string          `json:"tool_name"`
		Arguments json.RawMessage `json:"arguments_json"`
		Content   json.RawMessage `json:"content"`
	}
	if err := json.Unmarshal(raw, &blocks); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, block := range blocks {
		for _, b := range block {
			out = append(out, b.CallID, b.Text, b.Name, b.Tool, string(b.Arguments))
			if b.Content != nil {
				out = append(out, sentTexts(t, b.Content)...)
			}
			var arguments map[string]any
			if b.Arguments == nil {
				continue
			}
			if err := json.Unmarshal(b.Arguments, &arguments); err != nil {
				t.Fatal(err)
			}
			for name, value := range arguments {
				s, _ := value.(string)
				out = append(out, name, s)
			}
		}
	}
	return out
}

// sentMessage is a message of which only the bytes that were sent are used, and the
// events that it is of.
type sentMessage struct {
	seqs   []eventlog.Seq
	origin render.Origin
	texts  []string
}

func readSent(t *rapid.T, c *assemble.Context) []sentMessage {
	out := make([]sentMessage, len(c.Messages))
	for i, m := range c.Messages {
		var message struct{ Blocks json.RawMessage }
		if err := json.Unmarshal(m.JSON, &message); err != nil {
			t.Fatal(err)
		}
		out[i] = sentMessage{m.Seqs, m.Origin, sentTexts(t, message.Blocks)}
	}
	return out
}

func (m sentMessage) holds(text string) bool {
	return slices.ContainsFunc(m.texts, func(s string) bool { return strings.Contains(s, text) })
}

// genNeedle draws a part of something that was said or written.
func genNeedle(t *rapid.T, sent []sentMessage) string {
	text := rapid.SampledFrom(append(slices.Clone(words), "call_3_0", "read", `"depth"`, `"depth": 1`, `{"depth":1,`, "interrupted")).Draw(t, "word")
	if rapid.Bool().Draw(t, "of what was sent") {
		text = rapid.SampledFrom(rapid.SampledFrom(sent).Draw(t, "message").texts).Draw(t, "text")
	}
	runes := []rune(text)
	if len(runes) == 0 {
		return "leak"
	}
	from := rapid.IntRange(0, len(runes)-1).Draw(t, "from")
	return string(runes[from : from+1+rapid.IntRange(0, min(30, len(runes)-from-1)).Draw(t, "runes")])
}

// TestExplainTellsWhatWasSent holds what Explain says against the bytes of the
// context, message by message.
func TestExplainTellsWhatWasSent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		store := memlog.New()
		defer func() {
			if err := store.Close(); err != nil {
				t.Error(err)
			}
		}()
		engine := newEngine(t, store)
		req := request()
		if rapid.Bool().Draw(t, "harness_view") {
			req.Policy.Projection.Name = projection.HarnessView
		}
		req.Budget = budget.Spec{MaxTokens: rapid.SampledFrom([]uint64{2500, 4000, 20_000}).Draw(t, "max_tokens"), Tokenizer: budget.TokenizerO200K}
		var sent *assemble.Context
		for i := range rapid.IntRange(2, 40).Draw(t, "stretches") {
			push(t, store, "s", genStretch(i).Draw(t, "stretch")...)
			switch rapid.IntRange(0, 4).Draw(t, "then") {
			case 0, 1:
				if c, err := engine.Assemble(context.Background(), req); err == nil {
					sent = c
				}
			case 2:
				compactNow(t, engine)
			}
		}
		if sent == nil {
			t.Skip("nothing was assembled")
		}
		if _, err := engine.RecordCall(context.Background(), assemble.Call{SessionID: "s", ProjectionID: sent.Projection.ID}); err != nil {
			t.Fatal(err)
		}
		messages := readSent(t, sent)
		for range 8 {
			text := genNeedle(t, messages)
			if strings.HasPrefix(text, "ctx:") {
				continue // a pointer names a block
			}
			got, err := engine.Explain(context.Background(), "s", 0, text)
			if err != nil {
				t.Fatal(err)
			}
			checkExplanation(t, got, messages, text)
		}
	})
}

func compactNow(t *rapid.T, engine *assemble.Engine) {
	c := assemble.Compaction{SessionID: "s", TargetTokens: 1500, Summary: genWords().Draw(t, "summary")}
	plan, err := engine.PlanCompaction(context.Background(), c)
	if err != nil || plan.Summary == nil {
		return
	}
	summary, err := engine.PutSummary(context.Background(), *plan.Summary, c.Summary)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := engine.Compact(context.Background(), c, &summary); err != nil {
		t.Log(err) // pinned messages may be too large
	}
}

func checkExplanation(t *rapid.T, got assemble.Explanation, sent []sentMessage, text string) {
	holds := func(of func(sentMessage) bool) bool {
		return slices.ContainsFunc(sent, func(m sentMessage) bool { return of(m) && m.holds(text) })
	}
	if want := holds(func(sentMessage) bool { return true }); got.Seen != want {
		t.Fatalf("%q was seen: %v; the bytes that were sent say %v", text, got.Seen, want)
	}
	seenAt := map[eventlog.Seq]bool{}
	for i, s := range got.Sightings {
		if i > 0 && (s.Seq < got.Sightings[i-1].Seq || s.Seq > 0 && s.Seq == got.Sightings[i-1].Seq && s.Block <= got.Sightings[i-1].Block) {
			t.Fatalf("the sightings are out of order: %+v", got.Sightings)
		}
		if s.Seen && !got.Seen {
			t.Fatalf("%q was seen at %+v, and not at all", text, s)
		}
		if !s.Seen && s.Reason == "" {
			t.Fatalf("%q was not seen at %+v for no reason", text, s)
		}
		seenAt[s.Seq] = seenAt[s.Seq] || s.Seen
	}
	if len(got.Sightings) == 100 {
		return // there may be more
	}
	if seenAt[0] && !holds(func(m sentMessage) bool { return m.origin == render.Summary }) {
		t.Fatalf("%q was seen in what contextd wrote: %+v", text, got.Sightings)
	}
	for _, m := range sent {
		if len(m.seqs) == 0 {
			continue // the digest, or a result that the log does not hold
		}
		seen := slices.ContainsFunc(m.seqs, func(seq eventlog.Seq) bool { return seenAt[seq] })
		if m.holds(text) && !seen {
			t.Fatalf("the message of the events %v holds %q; Explain says %+v", m.seqs, text, got.Sightings)
		}
	}
	for seq, seen := range seenAt {
		if seen && seq > 0 && !holds(func(m sentMessage) bool { return m.stands(sent, seq) }) {
			t.Fatalf("%q was seen at event %d, whose messages do not hold it: %+v", text, seq, got.Sightings)
		}
	}
}

// stands reports whether the message is of the event, or answers a call of it for want
// of a result.
func (m sentMessage) stands(sent []sentMessage, seq eventlog.Seq) bool {
	if len(m.seqs) > 0 || m.origin == render.Summary {
		return slices.Contains(m.seqs, seq)
	}
	return slices.ContainsFunc(sent, func(calls sentMessage) bool {
		return slices.Contains(calls.seqs, seq) && slices.Contains(calls.texts, m.texts[0])
	})
}
