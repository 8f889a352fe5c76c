package ledger

import (
	"strings"
	"testing"

	"github.com/contextd/contextd/internal/budget"
)

// TestFilesThatCallsChange: a call says by its name, by its patch or by its command what it changes.
func TestFilesThatCallsChange(t *testing.T) {
	f := NewFiles(budget.NewAccountant(budget.Heuristic{}))
	f.Add("Read", `{"file_path":"read.go"}`)
	f.Add("Edit", `{"file_path":"edit.go","old_string":"a","new_string":"b"}`)
	f.Add("apply_patch", "*** Begin Patch\n*** Update File: patch.go\n-a\n+b\n*** End Patch")
	f.Add("exec", `{"input":"const p = \"*** Begin Patch\\n*** Update File: code.go\\n-a\\n+b\\n*** End Patch\";\nawait tools.apply_patch(p);"}`)
	f.Add("Agent", `{"prompt":"*** Begin Patch\n*** Update File: quoted.go\n-a\n+b\n*** End Patch"}`)
	var out strings.Builder
	for _, p := range f.Write(1000) {
		out.WriteString(p.Text)
	}
	if want := "Files changed: code.go, patch.go, edit.go\nFiles read: read.go\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}
