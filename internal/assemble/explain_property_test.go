package assemble_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/contextd/contextd/internal/assemble"
	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/explain"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/memlog"
	"github.com/contextd/contextd/internal/projection"
	"github.com/contextd/contextd/internal/records"
	"github.com/contextd/contextd/internal/reduce"
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
		model := rapid.SampledFrom([]string{"claude-x", "gpt-5", "gemini-2.5-pro", ""}).Draw(t, "model")
		say := func(role eventlog.Role, blocks ...eventlog.Block) {
			add(&eventlog.Message{Role: role, Blocks: blocks, Model: model, Pinned: rapid.IntRange(0, 30).Draw(t, "pinned") == 0})
		}
		if i == 0 || rapid.IntRange(0, 4).Draw(t, "user") == 0 {
			said := []eventlog.Block{eventlog.Text{Text: genWords().Draw(t, "said")}}
			if rapid.IntRange(0, 3).Draw(t, "shows") == 0 {
				said = append(said, eventlog.Media{MIMEType: "image/png", URI: "https://example.com/leak.png", Tokens: 100})
			}
			say(eventlog.RoleUser, said...)
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
			blocks = append([]eventlog.Block{genSealed(t, i)}, blocks...)
		}
		if rapid.IntRange(0, 9).Draw(t, "searches") == 0 {
			blocks = append(blocks, eventlog.ProviderBlock{Provider: "openai", JSON: `{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"E4217 leak"}}`})
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

// seal looks like words but is opaque: no model reads it.
const seal = "leakE4217abc"

// genSealed draws reasoning that a provider sealed in one of its ways, or did not.
func genSealed(t *rapid.T, i int) eventlog.Thinking {
	thought := eventlog.Thinking{Text: fmt.Sprintf("thought %d: %s", i, genWords().Draw(t, "thought"))}
	switch rapid.IntRange(0, 4).Draw(t, "sealed") {
	case 0:
		thought.Signature = seal
	case 1:
		thought.EncryptedContent = seal
	case 2:
		return eventlog.Thinking{RedactedData: seal}
	}
	return thought
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

// opaque are the members of which a model reads nothing, in any format.
var opaque = []string{
	"type", "role", "status", "signature", "encrypted_content", "redacted_data", "data", "thoughtSignature", "thought_signature", "file_data",
}

// sentTexts reads the texts out of a message as it was sent in any format: all strings but
// the opaque ones, and what is JSON in them.
func sentTexts(t *rapid.T, raw json.RawMessage) []string {
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		t.Fatal(err)
	}
	var members map[string]json.RawMessage
	var items []json.RawMessage
	switch value := value.(type) {
	case string:
		if strings.HasPrefix(value, "data:") {
			return nil
		}
		return []string{value}
	case []any:
		if err := json.Unmarshal(raw, &items); err != nil {
			t.Fatal(err)
		}
	case map[string]any:
		if err := json.Unmarshal(raw, &members); err != nil {
			t.Fatal(err)
		}
	}
	var out []string
	for _, item := range items {
		out = append(out, sentTexts(t, item)...)
	}
	for name, member := range members {
		switch {
		case slices.Contains(opaque, name):
		case slices.Contains([]string{"arguments_json", "arguments", "input", "args", "response", "json"}, name):
			text := string(member)
			if json.Unmarshal(member, &text) != nil {
				text = string(member)
			}
			out = append(out, text)
			var of map[string]any
			if json.Unmarshal([]byte(text), &of) != nil {
				continue
			}
			for name, value := range of {
				s, _ := value.(string)
				out = append(out, name, s)
			}
		default:
			out = append(out, sentTexts(t, member)...)
		}
	}
	return out
}

// sentMessage is a message as sent: its bytes, its events, and whether it contains the digest. The
// message's origin does not say the latter: a digest that a format joins to a clipped message has that
// message's origin.
type sentMessage struct {
	seqs   []eventlog.Seq
	digest bool
	texts  []string
}

func readSent(t *rapid.T, c *assemble.Context) []sentMessage {
	out := make([]sentMessage, len(c.Messages))
	for i, m := range c.Messages {
		out[i] = sentMessage{m.Seqs, m.Digest, sentTexts(t, m.JSON)}
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

var formats = []string{render.NameContextd, "anthropic", "openai_chat", "openai_responses", "gemini"}

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
		req.Budget.Format = rapid.SampledFrom(formats).Draw(t, "format")
		var sent *assemble.Context
		for i := range rapid.IntRange(2, 40).Draw(t, "stretches") {
			push(t, store, "s", genStretch(i).Draw(t, "stretch")...)
			switch rapid.IntRange(0, 4).Draw(t, "then") {
			case 0, 1:
				if c, err := engine.Assemble(context.Background(), req); err == nil {
					sent = c
				}
			case 2:
				compactNow(t, store, engine)
			}
		}
		if sent == nil {
			t.Skip("DISCARDED: the draw has no assembly, so there is no call to explain")
		}
		if _, _, err := engine.RecordCall(context.Background(), records.Call{SessionID: "s", ProjectionID: sent.Projection.ID}); err != nil {
			t.Fatal(err)
		}
		messages := readSent(t, sent)
		for range 8 {
			text := genNeedle(t, messages)
			if strings.HasPrefix(text, "ctx:") {
				continue // a pointer names a block
			}
			got, err := engine.Explain(context.Background(), "s", assemble.Asked{Call: 0}, text, assemble.Request{})
			if err != nil {
				t.Fatal(err)
			}
			checkExplanation(t, got, messages, text)
		}
		checkThoughts(t, engine, store, messages)
	})
}

// checkThoughts holds what Explain says of every piece of reasoning, by its text and by its
// pointer, against the bytes of the messages: it was seen if all of it can be read there.
func checkThoughts(t *rapid.T, engine *assemble.Engine, store eventlog.Store, sent []sentMessage) {
	for e, err := range store.Read(context.Background(), "s", 1, 1<<40) {
		if err != nil {
			t.Fatal(err)
		}
		m, ok := e.Body.(*eventlog.Message)
		if !ok {
			continue
		}
		thought, ok := m.Blocks[0].(eventlog.Thinking)
		if !ok || thought.Text == "" {
			continue
		}
		there := slices.ContainsFunc(sent, func(m sentMessage) bool { return slices.Contains(m.seqs, e.Seq) && m.holds(thought.Text) })
		word, _, _ := strings.Cut(thought.Text, ":")
		for _, text := range []string{word + ":", fmt.Sprintf("ctx:%d.0", e.Seq)} {
			got, err := engine.Explain(context.Background(), "s", assemble.Asked{Call: 0}, text, assemble.Request{})
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range got.Sightings {
				if s.Seq == e.Seq && s.Block == 0 && s.Seen != there {
					t.Fatalf("%q of event %d was seen: %v, because %q; the bytes say %v", text, e.Seq, s.Seen, s.Reason, there)
				}
			}
		}
	}
}

func compactNow(t *rapid.T, store eventlog.Store, engine *assemble.Engine) {
	c := assemble.Compaction{SessionID: "s", TargetTokens: 1500, Summary: genWords().Draw(t, "summary")}
	plan, err := engine.PlanCompaction(context.Background(), c)
	if err != nil || plan.Summary == nil {
		return
	}
	summary, err := engine.PutSummary(context.Background(), *plan.Summary, c.Summary)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := engine.Compact(context.Background(), c, &summary, marking(t, store, "s")); err != nil {
		t.Log(err) // pinned messages may be too large
	}
}

func checkExplanation(t *rapid.T, got explain.Explanation, sent []sentMessage, text string) {
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
	if seenAt[0] && !holds(func(m sentMessage) bool { return m.digest }) {
		t.Fatalf("%q was seen in what contextd wrote: %+v", text, got.Sightings)
	}
	for _, m := range sent {
		if len(m.seqs) == 0 || seenAt[0] {
			continue // the digest, which others may join, or a result that the log does not hold
		}
		seen := slices.ContainsFunc(m.seqs, func(seq eventlog.Seq) bool { return seenAt[seq] })
		if m.holds(text) && !seen {
			t.Fatalf("the message of the events %v holds %q; Explain says %+v", m.seqs, text, got.Sightings)
		}
	}
	for seq, seen := range seenAt {
		// A result that contextd made up is in a message of no event, or in that of others.
		if seen && seq > 0 && !holds(func(m sentMessage) bool { return slices.Contains(m.seqs, seq) }) && !strings.Contains(interrupted, text) {
			t.Fatalf("%q was seen at event %d, whose messages do not hold it: %+v", text, seq, got.Sightings)
		}
	}
}

const interrupted = reduce.InterruptedText
