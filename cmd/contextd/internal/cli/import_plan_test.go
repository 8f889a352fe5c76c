package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// idPattern is the API's rule for the ids of sessions.
var idPattern = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._:@-]*(/[A-Za-z0-9_][A-Za-z0-9._:@-]*)*$`)

func TestTreeID(t *testing.T) {
	for rel, want := range map[string]string{
		"a.jsonl":                   "a",
		"a.json":                    "a.json",
		"a.jsonl.gz":                "a",
		"a.json.gz":                 "a.json.gz",
		".jsonl.gz":                 "_@2ejsonl.gz",
		"a":                         "a@",
		"-home-x/1234-ab.jsonl":     "_@2dhome-x/1234-ab",
		".hidden/a b/_c.jsonl":      "_@2ehidden/a@20b/_c",
		"ü@x.json":                  "_@c3@bc@40x.json",
		".jsonl":                    "_@2ejsonl",
		"2026/03/01/roll:out.jsonl": "2026/03/01/roll:out",
	} {
		if got := treeID(rel); got != want {
			t.Errorf("%q is %q, want %q", rel, got, want)
		}
	}
}

// TestTreeIDs: every path gets an id that the API accepts, with room for suffixes. Different paths get
// different ids, except for a file and its compressed copy.
func TestTreeIDs(t *testing.T) {
	name := rapid.OneOf(
		rapid.StringMatching(`[-._:@ab]{1,4}(\.jsonl|\.json|\.gz|\.jsonl\.gz)?`),
		rapid.StringMatching(`[ab@]{60,80}`),
		rapid.Custom(func(t *rapid.T) string {
			return strings.Map(func(r rune) rune {
				if r == '/' || r == 0 {
					return 'x'
				}
				return r
			}, rapid.StringN(1, 8, -1).Draw(t, "text"))
		}),
	).Filter(func(s string) bool { return s != "." && s != ".." })
	path := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(name, 1, 4).Draw(t, "names"), "/")
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := path.Draw(t, "a"), path.Draw(t, "b")
		for _, rel := range []string{a, b} {
			if id := treeID(rel); !idPattern.MatchString(id) || len(id) > longestID {
				t.Fatalf("%q has the id %q", rel, id)
			}
		}
		packed := func(rel string) string {
			if strings.HasSuffix(rel, lines+".gz") {
				return strings.TrimSuffix(rel, ".gz")
			}
			return rel
		}
		if packed(a) != packed(b) && treeID(a) == treeID(b) {
			t.Fatalf("%q and %q have the id %q", a, b, treeID(a))
		}
	})
}

func FuzzTreeID(f *testing.F) {
	f.Add("a/b.jsonl")
	f.Add("-x/\xff@")
	f.Fuzz(func(t *testing.T, rel string) {
		if !filepath.IsLocal(rel) || filepath.Clean(rel) != rel || rel == "." {
			return // a walk of a folder never gives such a path
		}
		if id := treeID(rel); !idPattern.MatchString(id) || len(id) > longestID {
			t.Errorf("%q has the id %q", rel, id)
		}
	})
}

func TestSessionOf(t *testing.T) {
	for path, want := range map[string]string{
		"-": "stdin", "x/1234.jsonl": "1234", "a.b.json": "a.b", "my chat.jsonl.gz": "my_chat", ".jsonl": "stdin", "-x@y.json": "x@y", "ä.json": "_",
	} {
		if got := sessionOf(path); got != want || !idPattern.MatchString(got) {
			t.Errorf("%q is %q, want %q", path, got, want)
		}
	}
}

// TestPlanImport: each file is listed once, symbolic links are skipped, and named files are marked.
func TestPlanImport(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"b.jsonl", "sub/a.jsonl", "sub/deeper/c"} {
		file := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{"loop": root, "link.jsonl": filepath.Join(root, "b.jsonl")} {
		if err := os.Symlink(target, filepath.Join(root, "sub", link)); err != nil {
			t.Fatal(err)
		}
	}
	entry := filepath.Join(t.TempDir(), "entry")
	if err := os.Symlink(root, entry); err != nil {
		t.Fatal(err)
	}
	got := planImport([]string{entry, filepath.Join(root, "b.jsonl")}, "p")
	want := []struct {
		session string
		named   bool
	}{{"p/b", true}, {"p/sub/a", false}, {"p/sub/deeper/c@", false}}
	if len(got) != len(want) {
		t.Fatalf("planned %v", got)
	}
	for i, w := range want {
		if got[i].session != w.session || got[i].named != w.named || got[i].err != nil {
			t.Errorf("planned %v, want %v", got[i], w)
		}
	}
}
