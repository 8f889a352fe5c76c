package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/contextd/contextd/cmd/contextd/internal/wire"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/render"
	"github.com/contextd/contextd/internal/render/rules"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// formatOf is the format of an enum's value.
func formatOf(t *testing.T, value contextdv1.Format) *render.Format {
	t.Helper()
	f, err := wire.FormatToDomain(value)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// eachFormat runs a test in every format but contextd's own.
func eachFormat(t *testing.T, test func(t *testing.T, format contextdv1.Format)) {
	for number, name := range contextdv1.Format_name {
		if format := contextdv1.Format(number); format != contextdv1.Format_FORMAT_UNSPECIFIED {
			t.Run(name, func(t *testing.T) { test(t, format) })
		}
	}
}

// held is what a client keeps of a context.
type held struct{ messages []*contextdv1.RenderedMessage }

// follow takes an answer in, as a client does.
func (h *held) follow(t *testing.T, got assembled) {
	t.Helper()
	h.messages = append(h.messages[:got.header.GetSkippedMessages():got.header.GetSkippedMessages()], got.messages...)
	if hash := hashOf(h.messages); hash != got.header.GetContextHash() {
		t.Fatalf("%d held messages hash to %s; the header says %d and %s", len(h.messages), hash, got.header.GetMessageCount(), got.header.GetContextHash())
	}
}

func (h *held) have(n uint32) *contextdv1.Have {
	return &contextdv1.Have{MessageCount: n, PrefixHash: hashOf(h.messages[:n])}
}

func (h *held) lines() (lines [][]byte) {
	for _, m := range h.messages {
		lines = append(lines, m.GetJson())
	}
	return lines
}

// A client that asks for what it lacks, turn by turn, holds what one that asks for
// everything gets, with injections and reminders, across cuts, in every format.
func TestDeltaInEveryFormat(t *testing.T) {
	eachFormat(t, func(t *testing.T, format contextdv1.Format) {
		eachStore(t, func(t *testing.T, open func(t *testing.T) eventlog.Store) {
			a := serve(t, open(t))
			var client held
			breaks := map[string]int{}
			injection := []*contextdv1.Injection{{Name: "now", Blocks: []*contextdv1.Block{text("It is noon.")}, ReserveTokens: 50}}
			n := uint32(0)
			for i, e := range longSession(30, 60) {
				a.append(t, "s", e)
				if i == 10 {
					a.append(t, "s", &contextdv1.Event{Kind: &contextdv1.Event_Reminder{Reminder: &contextdv1.Reminder{Body: "Mind the gap.", TtlTurns: proto.Uint32(2)}}})
				}
				if e.GetMessage().GetRole() == contextdv1.Role_ROLE_ASSISTANT {
					continue
				}
				req := &contextdv1.AssembleContextRequest{SessionId: "s", Format: format, Budget: tight(), Injections: injection}
				if n > 0 {
					req.Have = client.have(n)
				}
				got, err := a.assemble(t, req)
				if err != nil {
					t.Fatal(err)
				}
				if b := got.header.GetHaveBroken(); b != nil {
					breaks[b.GetReducer()]++
					if b.GetIndex() != got.header.GetSkippedMessages() || b.GetReducer() == "" || b.GetReason() == "" {
						t.Errorf("broken at %v; %d are skipped", b, got.header.GetSkippedMessages())
					}
				} else if got.header.GetSkippedMessages() != n {
					t.Errorf("%d of %d messages that the client has are skipped, and nothing is said to be broken", got.header.GetSkippedMessages(), n)
				}
				client.follow(t, got)
				n = got.header.GetPrefixMessages()
				full, err := a.assemble(t, &contextdv1.AssembleContextRequest{SessionId: "s", Format: format, Budget: tight(), Injections: injection, Preview: true})
				if err != nil {
					t.Fatal(err)
				}
				if full.header.GetContextHash() != got.header.GetContextHash() || full.header.GetPrefixHash() != got.header.GetPrefixHash() {
					t.Fatalf("event %d: the same request without have gives another context", i)
				}
				for _, violation := range rules.Of(formatOf(t, format).Name)(client.lines()) {
					t.Errorf("event %d: %v", i, violation)
				}
				replay, err := a.ReplayProjection(t.Context(), &contextdv1.ReplayProjectionRequest{SessionId: "s", ProjectionId: got.header.GetProjectionId()})
				if err != nil || !replay.GetSame() || replay.GetRecorded().GetFormat() != format {
					t.Fatalf("replayed in %v: %q, %v", replay.GetRecorded().GetFormat(), replay.GetDifference(), err)
				}
			}
			if breaks["dialogue_window"] == 0 && breaks["tool_results"] == 0 || breaks["log"] > 0 {
				t.Errorf("what the client had was rewritten by %v", breaks)
			}
		})
	})
}

// A reminder comes last, so that what is said next replaces it.
func TestHaveBrokenByAReminder(t *testing.T) {
	a := serve(t, stores["memory"](t))
	a.append(t, "s", conversation()...)
	a.append(t, "s", &contextdv1.Event{Kind: &contextdv1.Event_Reminder{Reminder: &contextdv1.Reminder{Body: "Mind the gap.", TtlTurns: proto.Uint32(1)}}})
	var client held
	first, err := a.assemble(t, &contextdv1.AssembleContextRequest{SessionId: "s"})
	if err != nil {
		t.Fatal(err)
	}
	client.follow(t, first)
	a.append(t, "s", message(contextdv1.Role_ROLE_ASSISTANT, text("Minded.")))
	next, err := a.assemble(t, &contextdv1.AssembleContextRequest{SessionId: "s", Have: client.have(first.header.GetMessageCount())})
	if err != nil {
		t.Fatal(err)
	}
	b := next.header.GetHaveBroken()
	if b.GetReducer() != "reminders" || b.GetIndex() != first.header.GetMessageCount()-1 {
		t.Errorf("%v of %d messages", b, first.header.GetMessageCount())
	}
	client.follow(t, next)
}

func TestHaveThatNobodySent(t *testing.T) {
	a := serve(t, stores["memory"](t))
	a.append(t, "s", conversation()...)
	have := &contextdv1.Have{MessageCount: 2, PrefixHash: "sha256:" + strings.Repeat("0", 64)}
	got, err := a.assemble(t, &contextdv1.AssembleContextRequest{SessionId: "s", Have: have})
	if err != nil {
		t.Fatal(err)
	}
	if b := got.header.GetHaveBroken(); b.GetReducer() != "unknown" || b.GetIndex() != 0 || got.header.GetSkippedMessages() != 0 {
		t.Errorf("%v, skipped %d", b, got.header.GetSkippedMessages())
	}
}

// Marks are at most four, ascending, never on what is gone the next time, and do not
// move back while the prefix is unchanged.
func TestCacheBreakpoints(t *testing.T) {
	a := serve(t, stores["memory"](t))
	before := []uint32{0}
	for i, e := range longSession(30, 60) {
		a.append(t, "s", e)
		if e.GetMessage().GetRole() == contextdv1.Role_ROLE_ASSISTANT {
			continue
		}
		injection := []*contextdv1.Injection{{Name: "now", Blocks: []*contextdv1.Block{text("It is noon.")}, ReserveTokens: 50}}
		got, err := a.assemble(t, &contextdv1.AssembleContextRequest{SessionId: "s", Format: contextdv1.Format_FORMAT_ANTHROPIC, Budget: tight(), Injections: injection})
		if err != nil {
			t.Fatal(err)
		}
		marks := got.header.GetCacheBreakpoints()
		if len(marks) == 0 || len(marks) > 4 {
			t.Fatalf("event %d: %d marks", i, len(marks))
		}
		var at []uint32
		for j, m := range marks {
			if j > 0 && m.GetMessageIndex() <= at[j-1] {
				t.Fatalf("event %d: marks %v", i, marks)
			}
			at = append(at, m.GetMessageIndex())
			checkMark(t, got.messages[m.GetMessageIndex()], m)
		}
		last := at[len(at)-1]
		if got.header.GetCache().GetBrokenBy() == "" && last < before[len(before)-1] {
			t.Errorf("event %d: the last mark moved back from %d to %d", i, before[len(before)-1], last)
		}
		if i > 0 && last != got.header.GetMessageCount()-1 { // the first context is a system prompt and the injection
			t.Errorf("event %d: the last of %d messages is not marked: %v", i, got.header.GetMessageCount(), marks)
		}
		before = at
	}
}

// checkMark checks that a mark with an item is right before the injection.
func checkMark(t *testing.T, m *contextdv1.RenderedMessage, mark *contextdv1.CacheBreakpoint) {
	t.Helper()
	var body struct{ Content []map[string]json.RawMessage }
	if err := json.Unmarshal(m.GetJson(), &body); err != nil {
		t.Fatal(err)
	}
	for i, item := range body.Content {
		injected := string(item["text"]) == `"It is noon."`
		if mark.ContentIndex == nil && injected || mark.ContentIndex != nil && injected != (i > int(mark.GetContentIndex())) {
			t.Errorf("mark %v of %s", mark, m.GetJson())
		}
	}
}

func TestPromptCacheKey(t *testing.T) {
	a := serve(t, stores["memory"](t))
	a.append(t, "s", conversation()...)
	a.append(t, "other", conversation()...)
	key := func(session string, format contextdv1.Format) string {
		got, err := a.assemble(t, &contextdv1.AssembleContextRequest{SessionId: session, Format: format})
		if err != nil {
			t.Fatal(err)
		}
		return got.header.GetPromptCacheKey()
	}
	chat := key("s", contextdv1.Format_FORMAT_OPENAI_CHAT)
	if chat == "" || chat != key("s", contextdv1.Format_FORMAT_OPENAI_CHAT) || chat == key("other", contextdv1.Format_FORMAT_OPENAI_CHAT) {
		t.Errorf("key %q", chat)
	}
	if other := key("s", contextdv1.Format_FORMAT_ANTHROPIC); other != "" {
		t.Errorf("Anthropic has no such key: %q", other)
	}
}

// A runtime that takes a call's id from a provider's messages may answer it by that.
func TestResultForRenderedCallID(t *testing.T) {
	const odd = "functions.read_file:0 {a call's id}"
	eachFormat(t, func(t *testing.T, format contextdv1.Format) {
		a := serve(t, stores["memory"](t))
		a.append(t, "s", user("Read it."), message(contextdv1.Role_ROLE_ASSISTANT, call(odd, "read_file", `{}`)))
		got, err := a.assemble(t, &contextdv1.AssembleContextRequest{SessionId: "s", Format: format})
		if err != nil {
			t.Fatal(err)
		}
		rendered := render.WireCallID(odd, 0)
		if all := fmt.Sprintf("%s", (&held{got.messages}).lines()); !strings.Contains(all, rendered) || strings.Contains(all, odd) {
			t.Fatalf("%s", all)
		}
		renamed := false
		for _, c := range got.header.GetConversions() {
			renamed = renamed || c.GetKind() == "renamed" && c.GetSourceSeq() == 2
		}
		if !renamed {
			t.Errorf("conversions are %v", got.header.GetConversions())
		}
		answer := message(contextdv1.Role_ROLE_TOOL, result(rendered, text("done")))
		answer.EventId = "answer"
		a.append(t, "s", answer)
		a.append(t, "s", answer) // a retry
		events := a.read(t, "s")
		if id := events[len(events)-1].GetMessage().GetBlocks()[0].GetToolResult().GetCallId(); id != odd || len(events) != 3 {
			t.Errorf("%d events, the last for %q", len(events), id)
		}
	})
}

// Around the same message and tools, each provider puts something else, and what a
// context is said to weigh is counted the same way.
func TestCountTokensByFormat(t *testing.T) {
	a := serve(t, stores["memory"](t))
	tools := []byte(`[{"type":"function","function":{"name":"read","description":"Reads a file.","parameters":{"type":"object","properties":{"path":{"type":"string"}}}}}]`)
	count := func(req *contextdv1.CountTokensRequest) uint64 {
		resp, err := a.CountTokens(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		return resp.GetTokens()
	}
	events := longSession(5, 20)
	a.append(t, "s", events...)
	eachFormat(t, func(t *testing.T, format contextdv1.Format) {
		var sum uint64
		for _, e := range events {
			sum += count(&contextdv1.CountTokensRequest{Message: e.GetMessage(), Format: format})
		}
		got, err := a.assemble(t, &contextdv1.AssembleContextRequest{SessionId: "s", Format: format})
		if err != nil {
			t.Fatal(err)
		}
		if got.header.GetBudget().GetRawTokens() != sum {
			t.Errorf("the log weighs %d, its messages %d", got.header.GetBudget().GetRawTokens(), sum)
		}
		plain := count(&contextdv1.CountTokensRequest{Message: events[2].GetMessage()})
		if framed := count(&contextdv1.CountTokensRequest{Message: events[2].GetMessage(), Format: format}); framed <= plain {
			t.Errorf("a call costs %d, without the provider's framing %d", framed, plain)
		}
		if n := count(&contextdv1.CountTokensRequest{ToolsJson: tools, Format: format}); n < 10 || n > 500 {
			t.Errorf("one tool costs %d", n)
		}
	})
}

// A brief answer says nothing again that the client has, and the same otherwise.
func TestBriefAnswers(t *testing.T) {
	a := serve(t, stores["memory"](t))
	a.append(t, "s", longSession(40, 100)...)
	full, err := a.assemble(t, &contextdv1.AssembleContextRequest{SessionId: "s", Budget: tight()})
	if err != nil {
		t.Fatal(err)
	}
	have := &contextdv1.Have{MessageCount: full.header.GetPrefixMessages(), PrefixHash: full.header.GetPrefixHash()}
	brief, err := a.assemble(t, &contextdv1.AssembleContextRequest{SessionId: "s", Budget: tight(), Have: have, Brief: true, Preview: true})
	if err != nil {
		t.Fatal(err)
	}
	if brief.header.GetContextHash() != full.header.GetContextHash() || brief.header.GetBudget().GetProjectedTokens() != full.header.GetBudget().GetProjectedTokens() {
		t.Errorf("brief: %v", brief.header)
	}
	if n := proto.Size(brief.header); len(brief.messages) != 0 || n > 500 {
		t.Errorf("nothing is new, and %d bytes and %d messages say so", n, len(brief.messages))
	}
}
