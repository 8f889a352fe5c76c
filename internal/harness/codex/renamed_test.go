package codex

import (
	"bytes"
	"strings"
	"testing"

	"github.com/contextd/contextd/internal/harness/transcript"
)

// TestRenamedSession writes a rollout under another id than the one that was read: every form of
// session_meta takes it, and what names another session keeps its own.
func TestRenamedSession(t *testing.T) {
	const was, other, now = "0199a213-0000-7000-8000-000000000001", "0199a213-0000-7000-8000-000000000009", "0199a213-0000-7000-8000-000000000002"
	user := `{"timestamp":"2026-01-01T00:00:01.000Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}}`
	shown := `{"timestamp":"2026-01-01T00:00:01.000Z","type":"event_msg","payload":{"type":"user_message","message":"hi"}}`
	for name, meta := range map[string]string{
		"without instructions": `{"timestamp":"2026-01-01T00:00:00.000Z","type":"session_meta","payload":{"id":"ID","n":1.0,"cwd":"/x","instructions":null}}`,
		"with instructions":    `{"timestamp":"2026-01-01T00:00:00.000Z","type":"session_meta","payload":{"id":"ID","cwd":"/x","instructions":"Be brief."}}`,
	} {
		t.Run(name, func(t *testing.T) {
			file := strings.Join([]string{strings.Replace(meta, "ID", was, 1), strings.Replace(meta, "ID", other, 1), user, shown}, "\n") + "\n"
			tr, err := read(strings.NewReader(file))
			if err != nil {
				t.Fatal(err)
			}
			var same, renamed bytes.Buffer
			if _, err := write(&same, tr, transcript.WriteOptions{}); err != nil {
				t.Fatal(err)
			}
			if _, err := write(&renamed, tr, transcript.WriteOptions{SessionID: now}); err != nil {
				t.Fatal(err)
			}
			if same.String() != file {
				t.Errorf("without another id the file changed:\n%s", same.String())
			}
			if want := strings.Replace(file, was, now, 1); renamed.String() != want {
				t.Errorf("got\n%swant\n%s", renamed.String(), want)
			}
		})
	}
}
