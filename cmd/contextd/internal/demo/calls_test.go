package demo

import (
	"strings"
	"testing"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// talk makes messages from a notation: "a:1,2" is an assistant's message with two calls, "a" one with text,
// "t:1" a result, "u" a user's message.
func talk(notation string) []*contextdv1.RenderedMessage {
	roles := map[string]contextdv1.Role{
		"a": contextdv1.Role_ROLE_ASSISTANT, "t": contextdv1.Role_ROLE_TOOL, "u": contextdv1.Role_ROLE_USER,
	}
	var out []*contextdv1.RenderedMessage
	for i, word := range strings.Fields(notation) {
		role, ids, _ := strings.Cut(word, ":")
		m := &contextdv1.Message{Role: roles[role]}
		for _, id := range strings.FieldsFunc(ids, func(r rune) bool { return r == ',' }) {
			b := &contextdv1.Block{Kind: &contextdv1.Block_ToolCall{ToolCall: &contextdv1.ToolCall{CallId: id, Name: "x"}}}
			if role != "a" {
				b = &contextdv1.Block{Kind: &contextdv1.Block_ToolResult{ToolResult: &contextdv1.ToolResult{CallId: id}}}
			}
			m.Blocks = append(m.Blocks, b)
		}
		if ids == "" {
			m.Blocks = append(m.Blocks, &contextdv1.Block{Kind: &contextdv1.Block_Text{Text: &contextdv1.Text{Text: "x"}}})
		}
		out = append(out, &contextdv1.RenderedMessage{Index: uint32(i), Message: m})
	}
	return out
}

func TestPairs(t *testing.T) {
	for notation, want := range map[string]string{
		"u a":                   "",
		"u a:1 t:1 a":           "",
		"u a:1,2 t:2 t:1 a":     "",
		"u a:1,2 t:1,2 u":       "",
		"u a a:1 a:2 t:1 t:2 a": "",
		"u a:1 u:1 a:1 t:1":     "",
		"u t:1":                 "answers 1",
		"u a:1 t:1 t:1":         "answers 1",
		"u a:1":                 "1 has no result",
		"u a:1,2 t:1":           "2 has no result",
		"u a:1 u t:1":           "before the result of 1",
		"u a:1,2 t:1 a t:2":     "before the result of 2",
		"u a:1 t:2":             "answers 2",
	} {
		err := checkPairs(talk(notation))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", notation, err, want)
		}
	}
}

func TestLedger(t *testing.T) {
	const digest = `[contextd: earlier messages left the context to fit its budget.]

Earlier the user said:
- ctx:2.0: "5 ×9"

Earlier tool calls (14), oldest first:
bash ×5, 2 error, 1 interrupted
read_file ×3
read_file path=a → b.go → ok ctx:12.0
bash command=grep '→ ok ×7' → error ×3 ctx:15.0
bash command=sleep 100 → interrupted
edit_file → ok ctx:21.1

Names that stood there:
internal/ledger/ledger.go ×3
`
	calls, pointers := ledgerOf(digest)
	if calls != 14 {
		t.Errorf("found %d calls", calls)
	}
	if got := strings.Join(pointers, " "); got != "ctx:12.0 ctx:15.0 ctx:21.1" {
		t.Errorf("found pointers %s", got)
	}
}
