package reference_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/contextd/contextd/internal/projection/reference"
)

func TestNames(t *testing.T) {
	for text, want := range map[string][]string{
		"":                                        nil,
		"Nothing that anybody would repeat.":      nil,
		"See src/parser/lexer.go, please.":        {"src/parser/lexer.go"},
		"src/a.go:12:5: undefined: parseTok":      {"src/a.go", "parseTok"},
		"./src/a.go and ../b/c":                   {"src/a.go", "../b/c"},
		"in /usr/lib/x86 or ~/notes":              {"/usr/lib/x86", "~/notes"},
		"`std::vec::Vec` of Foo::bar.":            {"std::vec::Vec", "Foo::bar"},
		"fixes #12, not #123":                     {"#12", "#123"},
		"see owner/repo#77":                       {"#77", "owner/repo#77"},
		"issue 12 and Issue 2, PR 7":              {"#12", "#2", "#7"},
		"12 issues, page 12":                      nil,
		"commit 9fceb02d0a by hand":               {"9fceb02d0a"},
		"id 123e4567-e89b-12d3-a456-426614174000": {"123e4567-e89b-12d3-a456-426614174000"},
		"lexer.go main.rs 1.5 e.g. i.e.":          {"lexer.go", "main.rs"},
		"max_tokens a_b":                          {"max_tokens"},
		"parseConfig, HTTPServer, GitHub, This":   {"parseConfig", "HTTPServer"},
		"utf8Decode, md5Sum and http2Server":      {"utf8Decode", "md5Sum", "http2Server"},
		"SQLDB, not HTTPS, TODO, FIXME or README": {"SQLDB"},
		"3rd, 2nd, 4K, mp3s, Q3 and 10x":          nil,
		"PROJ-123 and sess_1a2b3c":                {"PROJ-123", "sess_1a2b3c"},
		"https://example.com/a?b":                 {"https://example.com/a"},
		"order 1656367028, size 42":               {"1656367028"},
		"and/or read/write yes/no":                nil,
		`{"file_path": "x", "someKey" : 1}`:       nil,
		"tool_result is_error toolCallId":         nil,
		"dateiÜbersicht.md":                       {"dateiÜbersicht.md"},
		"請看src/a.go的第一行":                          {"src/a.go"},
		"…lib/util.go…":                           {"lib/util.go"},
		"@scope/pkg and a@b.example":              {"@scope/pkg", "a@b.example"},
	} {
		if diff := cmp.Diff(want, names(text), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

func TestFields(t *testing.T) {
	for text, want := range map[string][]string{
		`{"id": "abc", "valid": "abd", "name": "abe"}`:             {"abc"},
		`{"orderId":"o1x","order_ids":["o2x", "o3x"],"ID":"o4x"}`:  {"o1x", "o2x", "o3x", "o4x"},
		`{"file_path": "./Makefile", "path":"go mod"}`:             {"Makefile"},
		`{"symbol": "run", "ref": "main", "grid": "no", "id":"x"}`: {"run", "main"},
		`{"id": 7, "path": null, "ids": []}`:                       nil,
		`log: "id": "abc" and "path" "x"`:                          {"abc"},
		`{"id": "abc`:                                              nil,
		`"id"`:                                                     nil,
		`{"a": "x\"id\": \"abc\""}`:                                nil,
	} {
		if diff := cmp.Diff(want, fields(text), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

func TestLines(t *testing.T) {
	got := lines("short line\n  > a line that is long enough to quote\n   12→\treturn nil, errors.New(\"x\")\n" +
		strings.Repeat("x", 100) + "\n------- --------- --------- -----")
	want := []string{"a line that is long enough to quote", `return nil, errors.New("x")`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPhrase(t *testing.T) {
	for _, c := range []struct {
		text, words string
		want        bool
	}{
		{"see issue 12.", "issue 2", false}, {"see issue 2.", "issue 2", true}, {"tissue 2", "issue 2", false},
		{"issue 20 and issue 2", "issue 2", true}, {"", "x", false},
	} {
		if reference.HoldsPhrase(c.text, c.words) != c.want {
			t.Errorf("%q in %q: want %v", c.words, c.text, c.want)
		}
	}
}

// FuzzNames: whatever a text, its names are parts of it, and are found again where
// they are alone.
func FuzzNames(f *testing.F) {
	for _, s := range []string{"src/a.go:12 issue 2 owner/repo#7", `{"ids":["abc","d\"e"]}`, "ÜÄé/ß.go\xc3", "> `quoted`", "a::b::c://x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, name := range names(text) {
			if !strings.Contains(text, name) && !strings.Contains(text, name[1:]) && !strings.Contains(name, "#") {
				t.Fatalf("%q does not stand in %q", name, text)
			}
			if !slices.Contains(names("see "+name+" there"), name) {
				t.Fatalf("%q, of %q, is not found alone: %q", name, text, names("see "+name+" there"))
			}
		}
		for _, name := range slices.Concat(fields(text), lines(text)) {
			if !strings.Contains(text, name) {
				t.Fatalf("%q does not stand in %q", name, text)
			}
		}
		references(reference.Unescaped(text))
	})
}

var (
	names      = gather(reference.EachName)
	fields     = gather(reference.EachField)
	lines      = gather(reference.EachLine)
	references = gather(reference.EachReference)
)

func gather(each func(string, func(string))) func(string) []string {
	return func(text string) []string {
		var all []string
		each(text, func(name string) { all = append(all, name) })
		return all
	}
}
