package transport

import (
	"strings"
	"testing"

	"buf.build/go/protovalidate"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// genText draws texts around every border of the rules.
func genText() *rapid.Generator[string] {
	valid := rapid.SampledFrom([]string{"a", "a/b", "e-1", "x"})
	return rapid.OneOf(
		// Mostly valid, so that requests with a single fault are common.
		valid, valid, valid, valid, valid, valid, valid, valid, valid, valid,
		rapid.SampledFrom([]string{"", "a", "a/b", "/a", "a/", "a//b", "../a", "a/.b", "_", "-a", "a b", "é", "a\x00", "a\x1f", "a\x7f", "a\n"}),
		rapid.Map(rapid.SampledFrom([]int{255, 256, 257, 511, 512, 513}), func(n int) string { return strings.Repeat("x", n) }),
		rapid.Map(rapid.SampledFrom([]int{128, 256, 257, 512, 513}), func(n int) string { return strings.Repeat("é", n) }),
		rapid.StringMatching(`[A-Za-z0-9._:@/-]{0,8}`),
	)
}

func genBlock(depth int) *rapid.Generator[*contextdv1.Block] {
	return rapid.Custom(func(t *rapid.T) *contextdv1.Block {
		text := func() string { return genText().Draw(t, "text") }
		switch rapid.IntRange(0, 6).Draw(t, "kind") {
		case 0, 1:
			return &contextdv1.Block{Kind: &contextdv1.Block_Text{Text: &contextdv1.Text{Text: text()}}}
		case 2:
			return &contextdv1.Block{Kind: &contextdv1.Block_Thinking{Thinking: &contextdv1.Thinking{Text: text(), Signature: text()}}}
		case 3:
			return &contextdv1.Block{Kind: &contextdv1.Block_ToolCall{ToolCall: &contextdv1.ToolCall{CallId: text(), Name: text()}}}
		case 4:
			r := &contextdv1.ToolResult{CallId: text(), ToolName: text()}
			if depth > 0 {
				r.Content = rapid.SliceOfN(genBlock(depth-1), 0, 2).Draw(t, "content")
			}
			return &contextdv1.Block{Kind: &contextdv1.Block_ToolResult{ToolResult: r}}
		case 5:
			return &contextdv1.Block{Kind: &contextdv1.Block_Media{Media: &contextdv1.Media{Uri: text()}}}
		default:
			return &contextdv1.Block{}
		}
	})
}

func genAppend() *rapid.Generator[*contextdv1.AppendEventsRequest] {
	return rapid.Custom(func(t *rapid.T) *contextdv1.AppendEventsRequest {
		m := &contextdv1.AppendEventsRequest{SessionId: genText().Draw(t, "session")}
		for range rapid.IntRange(0, 2).Draw(t, "events") {
			e := &contextdv1.Event{EventId: genText().Draw(t, "id")}
			switch rapid.IntRange(0, 6).Draw(t, "body") {
			case 0:
				e.Kind = &contextdv1.Event_Reminder{Reminder: &contextdv1.Reminder{Body: genText().Draw(t, "body")}}
			case 1:
				e.Labels = map[string]string{genText().Draw(t, "key"): "v"}
			default:
				e.Kind = &contextdv1.Event_Message{Message: &contextdv1.Message{
					Role:    contextdv1.Role(rapid.Int32Range(-1, 6).Draw(t, "role")),
					GroupId: genText().Draw(t, "group"), Model: genText().Draw(t, "model"),
					Blocks: rapid.SliceOfN(genBlock(1), 0, 3).Draw(t, "blocks"),
				}}
			}
			m.Events = append(m.Events, e)
		}
		return m
	})
}

// TestPlainlyValidIsValid holds the glance to the rules.
func TestPlainlyValidIsValid(t *testing.T) {
	plain := 0
	rapid.Check(t, func(t *rapid.T) {
		m := genAppend().Draw(t, "request")
		for _, request := range []proto.Message{m, &contextdv1.AppendEventStreamRequest{Append: m}} {
			if !plainlyValid(request) {
				continue
			}
			plain++
			if err := protovalidate.Validate(request); err != nil {
				t.Fatalf("accepted at a glance: %v", err)
			}
		}
	})
	if plain == 0 {
		t.Error("nothing was accepted at a glance")
	}
}

// TestPlainlyValidKnowsAgents keeps the everyday appends on the short way.
func TestPlainlyValidKnowsAgents(t *testing.T) {
	text := &contextdv1.Block{Kind: &contextdv1.Block_Text{Text: &contextdv1.Text{Text: "x"}}}
	call := &contextdv1.Block{Kind: &contextdv1.Block_ToolCall{ToolCall: &contextdv1.ToolCall{CallId: "c", Name: "ls"}}}
	result := &contextdv1.Block{Kind: &contextdv1.Block_ToolResult{ToolResult: &contextdv1.ToolResult{CallId: "c", Content: []*contextdv1.Block{text}}}}
	for _, block := range []*contextdv1.Block{text, call, result} {
		m := &contextdv1.AppendEventsRequest{SessionId: "team/agent-1", Events: []*contextdv1.Event{{
			EventId: "e-1", Kind: &contextdv1.Event_Message{Message: &contextdv1.Message{Role: contextdv1.Role_ROLE_USER, Blocks: []*contextdv1.Block{block}}},
		}}}
		if !plainlyValid(m) {
			t.Errorf("%v is left to the rules", m)
		}
	}
	if plainlyValid(&contextdv1.AppendEventStreamRequest{}) || plainlyValid(&contextdv1.GetSessionRequest{SessionId: "s"}) {
		t.Error("a request that it does not know is accepted")
	}
}
