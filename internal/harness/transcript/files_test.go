package transcript_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/contextd/contextd/internal/harness/transcript"
)

func TestEditors(t *testing.T) {
	editors := transcript.Editors{"edit": {"path", "to"}, "write": {"path"}}
	for _, tt := range []struct {
		tool, arguments string
		want            []string
	}{
		{"edit", `{"path":"a.go","to":"b.go","content":"x"}`, []string{"a.go", "b.go"}},
		{"edit", `{"to":"b.go"}`, []string{"b.go"}},
		{"write", `{"path":"a.go","to":"b.go"}`, []string{"a.go"}},
		{"write", `{"path":""}`, nil},
		{"write", `{"path":{"a":1}}`, nil},
		{"write", `["a.go"]`, nil},
		{"write", `{"path":`, nil},
		{"write", "", nil},
		{"read", `{"path":"a.go"}`, nil},
	} {
		if got := editors.Files(tt.tool, []byte(tt.arguments)); !slices.Equal(got, tt.want) {
			t.Errorf("%s %s changes %q, want %q", tt.tool, tt.arguments, got, tt.want)
		}
	}
}

func TestPatchFiles(t *testing.T) {
	patch := "*** Begin Patch\r\n*** Add File: new.go\r\n+x\n*** Update File: a b.go\n*** Move to: c.go\n@@\n-*** Delete File: no.go\n*** Delete File: d.go\n*** End Patch"
	if got, want := transcript.PatchFiles(patch), []string{"new.go", "a b.go", "c.go", "d.go"}; !slices.Equal(got, want) {
		t.Errorf("the patch is about %q, want %q", got, want)
	}
}

func TestFilesChanged(t *testing.T) {
	if got := transcript.FilesChanged([]string{"a", "", "b\x00", "a"}); got != "a\nb�" && got != "a\nb" {
		t.Errorf("%q", got)
	}
	long := strings.Repeat("é", transcript.MaxLabelValue)
	if got := transcript.FilesChanged([]string{long}); got != long {
		t.Errorf("a value of %d characters was left out", transcript.MaxLabelValue)
	}
	if got := transcript.FilesChanged([]string{long, "x"}); got != "" {
		t.Errorf("%d bytes in a label", len(got))
	}
	labels := map[string]string{"k": "v"}
	with := transcript.WithFilesChanged(labels, []string{"a"})
	if len(labels) != 1 || len(with) != 2 || with[transcript.LabelFilesChanged] != "a" || with["k"] != "v" {
		t.Errorf("%v became %v", labels, with)
	}
	if transcript.WithFilesChanged(nil, nil) != nil {
		t.Error("labels without a label")
	}
}

func TestOpenEdits(t *testing.T) {
	open := transcript.OpenEdits{}
	open.Call("x", []string{"a"})
	open.Call("x", nil)
	open.Call("x", []string{"b"})
	for i, want := range []string{"a", "", "b", ""} {
		if got := strings.Join(open.Result("x"), " "); got != want {
			t.Errorf("result %d changed %q, want %q", i, got, want)
		}
	}
	if len(open) != 0 {
		t.Errorf("%v is still open", open)
	}
}
