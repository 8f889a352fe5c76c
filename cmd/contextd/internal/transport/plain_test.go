package transport

import (
	"strings"
	"testing"

	"buf.build/go/protovalidate"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// texts lie around every border of the rules.
func texts() []string {
	out := []string{"", "a/b", "/a", "a/", "a//b", "../a", "a/.b", "_", "-a", "a b", "é", "a\x00", "a\x1f", "a\x7f", "a\n", "a.b:c@d-e"}
	for _, hash := range []string{strings.Repeat("a0", 32), strings.Repeat("A0", 32), strings.Repeat("a0", 31), "-" + strings.Repeat("a", 63)} {
		out = append(out, "sha256:"+hash, hash, "sha256:"+hash+"\n")
	}
	for _, n := range []int{64, 65, 128, 255, 256, 257, 511, 512, 513} {
		out = append(out, strings.Repeat("x", n), strings.Repeat("é", n))
	}
	return out
}

// drawer makes a valid request, except for some of its values.
type drawer struct {
	// odd says by which of its alternatives the n-th value is replaced.
	odd    map[int]int
	values int
}

// alternative returns the number of the next value's, if it has one.
func (d *drawer) alternative() (int, bool) {
	d.values++
	n, ok := d.odd[d.values]
	return n, ok
}

func (d *drawer) text(valid string) string {
	if n, ok := d.alternative(); ok {
		all := texts()
		return all[n%len(all)]
	}
	return valid
}

func (d *drawer) number(most, valid int) int {
	if n, ok := d.alternative(); ok {
		return n%(most+2) - 1
	}
	return valid
}

func (d *drawer) block(depth int) *contextdv1.Block {
	switch d.number(6, depth) {
	case 0:
		return &contextdv1.Block{Kind: &contextdv1.Block_Text{Text: &contextdv1.Text{Text: d.text("x")}}}
	case 1:
		r := &contextdv1.ToolResult{CallId: d.text("c"), ToolName: d.text("t"), Content: []*contextdv1.Block{d.block(0)}}
		return &contextdv1.Block{Kind: &contextdv1.Block_ToolResult{ToolResult: r}}
	case 2:
		return &contextdv1.Block{Kind: &contextdv1.Block_ToolCall{ToolCall: &contextdv1.ToolCall{CallId: d.text("c"), Name: d.text("t")}}}
	case 3:
		return &contextdv1.Block{Kind: &contextdv1.Block_Thinking{Thinking: &contextdv1.Thinking{Text: d.text("x"), Signature: d.text("")}}}
	case 4:
		return &contextdv1.Block{Kind: &contextdv1.Block_Media{Media: &contextdv1.Media{Uri: d.text("u")}}}
	default:
		return &contextdv1.Block{}
	}
}

func (d *drawer) append() *contextdv1.AppendEventsRequest {
	m := &contextdv1.AppendEventsRequest{SessionId: d.text("s"), Known: &contextdv1.LogMark{Incarnation: d.text("i"), ChainHead: d.text("")}}
	for range max(d.number(2, 1), 0) {
		e := &contextdv1.Event{EventId: d.text("e")}
		switch d.number(3, 0) {
		case 1:
			e.Kind = &contextdv1.Event_Reminder{Reminder: &contextdv1.Reminder{Body: d.text("b")}}
		case 2:
			// Against the rules: a glance does not look at labels at all.
			e.Labels = map[string]string{"": d.text("v")}
			fallthrough
		case 0:
			message := &contextdv1.Message{Role: contextdv1.Role(d.number(6, 2)), GroupId: d.text("g"), Model: d.text("m")}
			for i := range max(d.number(4, 4), 0) {
				message.Blocks = append(message.Blocks, d.block(i))
			}
			e.Kind = &contextdv1.Event_Message{Message: message}
		}
		m.Events = append(m.Events, e)
	}
	return m
}

// maxValues is more than a request has, and maxAlternatives than a value has.
const (
	maxValues       = 42
	maxAlternatives = 48
)

// TestPlainlyValidIsValid compares the glance with the rules: with every single fault there
// is, and with some of all pairs.
func TestPlainlyValidIsValid(t *testing.T) {
	plain := 0
	check := func(t testing.TB, odd map[int]int) {
		m := (&drawer{odd: odd}).append()
		for _, request := range []proto.Message{m, &contextdv1.AppendEventStreamRequest{Append: m}} {
			if !plainlyValid(request) {
				continue
			}
			plain++
			if err := protovalidate.Validate(request); err != nil {
				t.Fatalf("accepted at a glance: %v", err)
			}
		}
	}
	for value := range maxValues {
		for alternative := range maxAlternatives {
			check(t, map[int]int{value: alternative})
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		check(t, rapid.MapOfN(rapid.IntRange(1, maxValues), rapid.IntRange(0, maxAlternatives), 2, 2).Draw(rt, "odd"))
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
		known := &contextdv1.LogMark{Incarnation: "18ec1022c11b596e-4c3", HeadSeq: 3, ChainHead: "sha256:" + strings.Repeat("a0", 32)}
		m := &contextdv1.AppendEventsRequest{SessionId: "team/agent-1", Known: known, Events: []*contextdv1.Event{{
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
