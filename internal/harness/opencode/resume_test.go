package opencode_test

import (
	"bytes"
	"testing"

	"github.com/contextd/contextd/internal/harness/harnesstest"
	"github.com/contextd/contextd/internal/harness/opencode"
	"github.com/contextd/contextd/internal/harness/transcript"
)

// TestSessionID: OpenCode takes no id of a session that does not begin as its own do.
func TestSessionID(t *testing.T) {
	for given, want := range map[string]string{
		"ses_0123":                             "ses_0123",
		"0195f7c2-7e1a-7a53-9b0c-3f6f0a4b6f10": "ses_0195f7c2-7e1a-7a53-9b0c-3f6f0a4b6f10",
	} {
		var out bytes.Buffer
		if _, err := opencode.Write(&out, harnesstest.Foreign(), transcript.WriteOptions{SessionID: given}); err != nil {
			t.Fatal(err)
		}
		again, err := opencode.Read(&out)
		if err != nil {
			t.Fatal(err)
		}
		if got := again.Sessions[0].Labels[transcript.LabelSessionID]; got != want {
			t.Errorf("%s becomes %s", given, got)
		}
	}
}
