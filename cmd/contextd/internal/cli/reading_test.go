package cli

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestReadingChangesNothing: commands that only read work where the directory cannot be written to, since they do not.
func TestReadingChangesNothing(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	makeStore(t, data, "s", "one", "two")
	policy := filepath.Join(t.TempDir(), "policy.json")
	if err := os.WriteFile(policy, []byte(`{"policies":{"p":{}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(line string) (code int, out, notes string) {
		var written, said bytes.Buffer
		p := Program{Stdin: strings.NewReader(""), Stdout: &written, Stderr: &said, LookupEnv: func(string) (string, bool) { return "", false }}
		code = p.Run(t.Context(), append(strings.Fields(line), "--embedded", data))
		return code, written.String(), said.String()
	}
	if code, _, notes := run("assemble s --max-tokens 1000"); code != ExitOK {
		t.Fatal(notes)
	}
	before := filesOf(t, data)
	for _, line := range []string{
		"sessions list", "sessions get s", "log s", "show s", "projections list s", "summaries s", "calls s",
		"explain s one", "resolve s ctx:1.0", "export s --format markdown", "export s --harness claude", "tokens one", "watch s --after 0 --limit 1",
		"verify", "gc --older-than 1d --dry-run", "assemble s --max-tokens 500 --preview", "policy check " + policy + " s",
		"__complete sessions get ",
	} {
		if code, out, notes := run(line); code != ExitOK {
			t.Errorf("%s: exit %d: %s%s", line, code, out, notes)
		}
		if after := filesOf(t, data); !maps.Equal(before, after) {
			t.Errorf("%s changed %v to %v", line, before, after)
			before = after
		}
	}
}

// filesOf lists the files below a directory, with their sizes and times.
func filesOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && d.Name() != "LOCK" { // which is opened to be locked
			all[path] = fmt.Sprint(info.Size(), " ", info.ModTime())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
