package budget_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
)

// words counts a token per word, so that expectations can be read.
type words struct{ name string }

func (w words) Name() string { return w.name }

func (words) Count(text string) budget.Count {
	return budget.Count{Tokens: len(strings.Fields(text))}
}

func TestCountBlock(t *testing.T) {
	exact := func(n int) budget.Count { return budget.Count{Tokens: n} }
	estimate := func(n int) budget.Count { return budget.Count{Tokens: n, Estimated: true} }
	for name, c := range map[string]struct {
		block eventlog.Block
		want  budget.Count
	}{
		"text":         {eventlog.Text{Text: "one two three"}, exact(3)},
		"empty text":   {eventlog.Text{}, exact(0)},
		"thinking":     {eventlog.Thinking{Text: "one two"}, exact(2)},
		"signed":       {eventlog.Thinking{Text: "one two", Signature: strings.Repeat("s", 101)}, estimate(21)},
		"long, signed": {eventlog.Thinking{Text: strings.Repeat("a ", 40), Signature: strings.Repeat("s", 100)}, estimate(40)},
		"encrypted":    {eventlog.Thinking{EncryptedContent: strings.Repeat("e", 1000)}, estimate(200)},
		"sealed twice": {eventlog.Thinking{Signature: "ssss", EncryptedContent: "ee", RedactedData: "r"}, estimate(2)},
		"redacted":     {eventlog.Thinking{RedactedData: strings.Repeat("\x00", 301)}, estimate(81)},
		"call":         {eventlog.ToolCall{CallID: "a b c d", Name: "read", Arguments: `{"path": "x"}`}, exact(budget.CallOverhead + 3)},
		"result": {eventlog.ToolResult{CallID: "a b", Content: []eventlog.Block{
			eventlog.Text{Text: "one two"}, eventlog.ProviderBlock{JSON: `{"a": 1}`},
		}}, exact(budget.ResultOverhead + 4)},
		"result with image": {eventlog.ToolResult{Content: []eventlog.Block{
			eventlog.Media{MIMEType: "image/png", Data: "..."},
		}}, estimate(budget.ResultOverhead + budget.ImageTokens)},
		"result with an estimate first": {eventlog.ToolResult{Content: []eventlog.Block{
			eventlog.Media{MIMEType: "image/png"}, eventlog.Text{Text: "one"},
		}}, estimate(budget.ResultOverhead + budget.ImageTokens + 1)},
		"empty result":       {eventlog.ToolResult{}, exact(budget.ResultOverhead)},
		"image with a price": {eventlog.Media{MIMEType: "image/png", Tokens: 85}, exact(85)},
		"image":              {eventlog.Media{MIMEType: "image/png", URI: "file:///x.png"}, estimate(budget.ImageTokens)},
		"large image":        {eventlog.Media{MIMEType: "image/png", Data: strings.Repeat("x", 1<<20)}, estimate(budget.ImageTokens)},
		"text as media":      {eventlog.Media{MIMEType: "text/csv", Data: "one two"}, exact(2)},
		"text elsewhere":     {eventlog.Media{MIMEType: "text/csv", URI: "file:///x.csv"}, estimate(budget.ImageTokens)},
		"no type":            {eventlog.Media{Data: "one two"}, estimate(budget.ImageTokens)},
		"priced document":    {eventlog.Media{MIMEType: "application/pdf", Data: strings.Repeat("x", 1<<20), Tokens: 3}, exact(3)},
		"priced text":        {eventlog.Media{MIMEType: "text/csv", Data: "one two", Tokens: 9}, exact(9)},
		"small document":     {eventlog.Media{MIMEType: "application/pdf", Data: "x"}, estimate(budget.ImageTokens)},
		"large document":     {eventlog.Media{MIMEType: "application/pdf", Data: strings.Repeat("x", 1<<20)}, estimate(1 << 16)},
		"provider block":     {eventlog.ProviderBlock{Provider: "openai", JSON: `{"type": "web_search_call"}`}, exact(2)},
		"gemini's text file": {eventlog.ProviderBlock{Provider: "google", JSON: `{"inlineData": {"mimeType": "text/csv", "data": "b25lIHR3bz8_"}}`}, exact(2)},
		"gemini's JSON file": {eventlog.ProviderBlock{Provider: "google", JSON: `{"inlineData": {"mimeType": "application/json", "data": "b25lIHR3bw=="}}`}, exact(2)},
		"gemini's video":     {eventlog.ProviderBlock{Provider: "google", JSON: `{"fileData": {"mimeType": "video/mp4", "fileUri": "gs://b/x"}}`}, estimate(budget.ImageTokens)},
		"gemini's bad file":  {eventlog.ProviderBlock{Provider: "google", JSON: `{"inlineData": {"data": "?"}}`}, exact(3)},
		"another's file":     {eventlog.ProviderBlock{Provider: "x", JSON: `{"fileData": {"fileUri": "gs://b/x"}}`}, exact(3)},
		"nothing":            {nil, exact(0)},
	} {
		a := budget.NewGauge(words{budget.TokenizerO200K})
		if got := a.CountBlock(c.block); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
		if got := a.Block(c.block); got != uint64(c.want.Tokens) {
			t.Errorf("%s: Block says %d, want %d", name, got, c.want.Tokens)
		}
	}
}

func TestCallsCostMoreWhereTheTemplateIsNotKnown(t *testing.T) {
	call := eventlog.ToolCall{Name: "read", Arguments: `{}`}
	got := budget.NewGauge(words{budget.TokenizerHeuristic}).CountBlock(call)
	if want := (budget.Count{Tokens: budget.EstimatedCallOverhead + 2, Estimated: true}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestCountEvent(t *testing.T) {
	a := budget.NewGauge(words{budget.TokenizerO200K})
	for name, c := range map[string]struct {
		body      eventlog.Body
		blocks    []uint32
		estimated bool
	}{
		"message": {&eventlog.Message{Role: eventlog.RoleAssistant, Blocks: []eventlog.Block{
			eventlog.Text{Text: "let us see"},
			eventlog.ToolCall{Name: "read", Arguments: `{}`},
		}}, []uint32{3, budget.CallOverhead + 2}, false},
		"message with image": {&eventlog.Message{Blocks: []eventlog.Block{
			eventlog.Text{Text: "a b"}, eventlog.Media{MIMEType: "image/gif"},
		}}, []uint32{2, budget.ImageTokens}, true},
		"empty message": {&eventlog.Message{}, []uint32{}, false},
		"reminder":      {&eventlog.Reminder{Body: "run the tests"}, []uint32{3}, false},
		"compaction":    {&eventlog.Compaction{Summary: "what was"}, nil, false},
		"custom":        {&eventlog.Custom{Type: "x", JSON: `{"a": 1}`}, nil, false},
	} {
		got := a.CountEvent(eventlog.Event{Body: c.body})
		if got.Tokenizer != a.Name() || !slices.Equal(got.Blocks, c.blocks) || got.Estimated != c.estimated {
			t.Errorf("%s: %+v, want %v (estimated %v)", name, got, c.blocks, c.estimated)
		}
	}
	text := "what rendering and reducing measure"
	if got := a.Text(text); got != a.Block(eventlog.Text{Text: text}) {
		t.Errorf("Text and Block differ: %d", got)
	}
}

func (words) Cost(text string) uint64 { return uint64(len(strings.Fields(text))) }

func (words) PerToken() uint64 { return 1 }

// vast counts more tokens than an event's counts can hold.
type vast struct{}

func (vast) Name() string { return "vast" }

func (vast) Count(string) budget.Count { return budget.Count{Tokens: math.MaxUint32 + 1} }

func (vast) Cost(string) uint64 { return math.MaxUint32 + 1 }

func (vast) PerToken() uint64 { return 1 }

func TestCountEventKeepsWithinItsNumbers(t *testing.T) {
	got := budget.NewGauge(vast{}).CountEvent(eventlog.Event{Body: &eventlog.Message{Blocks: []eventlog.Block{eventlog.Text{}}}})
	if !slices.Equal(got.Blocks, []uint32{math.MaxUint32}) {
		t.Errorf("%v", got.Blocks)
	}
}
