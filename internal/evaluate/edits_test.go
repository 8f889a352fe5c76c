package evaluate

import (
	"slices"
	"testing"

	"github.com/contextd/contextd/internal/reduce"
)

func TestLinesThatEditsMustReproduce(t *testing.T) {
	got := mustReproduce(&reduce.Group{Calls: []reduce.Call{
		{Name: "Read", Arguments: `{"file_path":"a.go"}`},
		{Name: "Edit", Arguments: `{"file_path":"a.go","old_string":"\tfirst := line()\nshort\n\tsecond := line()","new_string":"\tnever := asked()"}`},
		{Name: "apply_patch", Arguments: `{"input":"*** Begin Patch\n*** Update File: a.go\n@@\n \tsecond := line()\n-\tthird := line()\n+\tnever := asked()\n*** End Patch"}`},
		{Name: "MultiEdit", Arguments: `{"file_path":"a.go","edits":[{"old_string":"fourth := line()","new_string":"never := asked()"},{"old_string":"\tfirst := line()","new_string":""}]}`},
		{Name: "bash", Arguments: `{"command":"git apply <<'EOF'\n--- a/x.py\n+++ b/x.py\n@@ -1,2 +1,2 @@\n kept = context()\n-fifth = line()\n+never = asked()\nEOF"}`},
		{Name: "shell", Arguments: `{"command":["bash","-lc","apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: b.ts\n+never asked for\n*** Update File: c.ts\n-sixth = line()\n*** End Patch\nEOF\n- never asked for"]}`},
		{Name: "apply_patch", Arguments: "*** Begin Patch\n*** Update File: d.ts\n-seventh = line()\n*** End Patch"},
		{Name: "replace_in_file", Arguments: `{"path":"e.ts","diff":"------- SEARCH\n\teighth = line()\n=======\nnever := asked()\n+++++++ REPLACE\n<<<<<<< SEARCH\n:start_line:1200\n-------\nninth = line()\n=======\nnever := asked()\n>>>>>>> REPLACE\nnever := asked()"}`},
		{Name: "Write", Arguments: `{"file_path":"b.go","content":"\tnever := asked()"}`},
		{Name: "bash", Arguments: `{"command":"cat > fix.patch <<'EOF'\n--- a/x.py\n+++ b/x.py\n@@ -1,2 +1,2 @@\n tenth = context()\n-\n+never = asked()\nEOF"}`},
		{Name: "exec", Arguments: `{"input":"const p = \"*** Begin Patch\\n*** Update File: d.ts\\n-eleventh = 'line'\\n*** End Patch\";\nawait tools.apply_patch(p);"}`},
		{Name: "shell", Arguments: `{"command":["apply_patch","*** Begin Patch\n*** Update File: d.ts\n-twelfth = line()\n*** End Patch"]}`},
		{Name: "command", Arguments: `{"command":"str_replace_editor str_replace /r/a.py --old_str 'thirteenth = line()' --new_str 'never = asked()'"}`},
		{Name: "command", Arguments: `{"command":"edit 3:4\nfourteenth = line()\nend_of_edit\n"}`},
		{Name: "edit", Arguments: `{"search":"fifteenth = line()","replace":"never = asked()"}`},
		{Name: "Agent", Arguments: `{"prompt":"Review\n--- a/x.py\n+++ b/x.py\n@@ -1,2 +1,2 @@\n never = asked()\n-never = asked(again)\n+x\n"}`},
	}})
	if want := []string{"first := line()", "second := line()", "third := line()", "fourth := line()", "kept = context()", "fifth = line()", "sixth = line()", "seventh = line()", "eighth = line()", "ninth = line()", "tenth = context()", "eleventh = 'line'", "twelfth = line()", "thirteenth = line()", "fourteenth = line()", "fifteenth = line()"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestShows(t *testing.T) {
	const line = `if a < "b" && c {`
	for text, want := range map[string]bool{
		"x\n\t" + line + "\n":                          true,
		`{"old":"\tif a < \"b\" && c {\n"}`:            true,
		`{"old":"if a \u003c \"b\" \u0026\u0026 c {"}`: true,
		`if a < "b" && d {`:                            false,
	} {
		if shows(text, line) != want {
			t.Errorf("%q: %t", text, !want)
		}
	}
}
