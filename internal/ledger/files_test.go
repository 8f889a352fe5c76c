package ledger

import (
	"strings"
	"testing"

	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/fileview"
	"github.com/contextd/contextd/internal/fileview/fileop"
)

// TestFilesThatCallsChange: a call says by its name, by its patch or by its command what it changes.
func TestFilesThatCallsChange(t *testing.T) {
	f := NewFiles(budget.NewGauge(budget.Heuristic{}))
	add := func(tool, arguments string) { f.Add(tool, arguments, fileview.Operations(tool, arguments)) }
	add("Read", `{"file_path":"read.go"}`)
	add("Edit", `{"file_path":"edit.go","old_string":"a","new_string":"b"}`)
	add("apply_patch", "*** Begin Patch\n*** Update File: patch.go\n-a\n+b\n*** End Patch")
	add("exec", `{"input":"const p = \"*** Begin Patch\\n*** Update File: code.go\\n-a\\n+b\\n*** End Patch\";\nawait tools.apply_patch(p);"}`)
	add("Agent", `{"prompt":"*** Begin Patch\n*** Update File: quoted.go\n-a\n+b\n*** End Patch"}`)
	var out strings.Builder
	for _, p := range f.Write(1000) {
		out.WriteString(p.Text)
	}
	if want := "Files changed: code.go, patch.go, edit.go\nFiles read: read.go\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

// TestFilesOfOneName: a file that calls name with its folder and without is one file, and files of one name in
// several folders are several.
func TestFilesOfOneName(t *testing.T) {
	f := NewFiles(budget.NewGauge(budget.Heuristic{}))
	add := func(tool, arguments string) { f.Add(tool, arguments, fileview.Operations(tool, arguments)) }
	add("write_file", `{"path":"/r/one/a.go","content":"a"}`)
	add("exec_command", `{"cmd":"sed -i 's/a/b/' a.go","workdir":"/r/one"}`)
	add("exec_command", `{"cmd":"echo b > b.go","workdir":"/r/one"}`)
	add("bash", `{"command":"cd /r/two && echo b > b.go"}`)
	add("Edit", `{"file_path":"/r/two/b.go","old_string":"b","new_string":"c"}`)
	add("apply_patch", `{"input":"*** Begin Patch\n*** Update File: b.go\n-b\n+c\n*** End Patch","workdir":"/r/one"}`)
	add("exec_command", `{"cmd":"echo c > c.go"}`)
	add("exec_command", `{"cmd":"echo c > c.go","workdir":"/r/one"}`)
	add("write_file", `{"path":"/r/one/c.go","content":"c"}`)
	if got, want := budget.Join(f.Write(1000)), "Files changed: c.go, b.go, /r/two/b.go, /r/one/a.go\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestFolderOfFiles: a folder is said once where that is shorter, and where no name's own folder is unknown.
func TestFolderOfFiles(t *testing.T) {
	for want, paths := range map[string][]string{
		"Files changed in /srv/projects/site/src: b.ts, ui/a.ts\n":                {"/srv/projects/site/src/ui/a.ts", "/srv/projects/site/src/b.ts"},
		"Files changed in /srv/projects/site: /tmp/c.ts, b.ts, a.ts\n":            {"/srv/projects/site/a.ts", "/srv/projects/site/b.ts", "/tmp/c.ts"},
		"Files changed: b.ts, /srv/projects/site/a.ts, /srv/projects/site/c.ts\n": {"/srv/projects/site/c.ts", "/srv/projects/site/a.ts", "b.ts"},
		"Files changed: /srv/projects/site/a.ts\n":                                {"/srv/projects/site/a.ts"},
		"Files changed in /mnt/two: d.ts, c.ts, /srv/one/b.ts, /srv/one/a.ts\n":   {"/srv/one/a.ts", "/srv/one/b.ts", "/mnt/two/c.ts", "/mnt/two/d.ts"}, // as short as in /srv/one
		"Files changed: /b.ts, /a.ts\n":                                           {"/a.ts", "/b.ts"},
	} {
		f := NewFiles(budget.NewGauge(budget.Heuristic{}))
		for range 10 { // the order of a map must not decide
			for _, path := range paths {
				f.Add("write_file", `{"path":"`+path+`","content":"a"}`, nil)
			}
			if got := budget.Join(f.Write(1000)); got != want {
				t.Fatalf("got %q, want %q", got, want)
			}
		}
	}
}

// TestLongFolder: a folder is not taken for one where it is longer than names are, since each part of it is looked at.
func TestLongFolder(t *testing.T) {
	f := NewFiles(budget.NewGauge(budget.Heuristic{}))
	f.Add("write_file", `{"path":"a.go","content":"a"}`, []fileop.Operation{{Kind: fileop.Write, Path: "a.go", Dir: strings.Repeat("/folder", 60)}})
	if names := f.files[0]; names.full != "" {
		t.Errorf("the file is %q", names.full)
	}
}
