package ledger_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/contextd/contextd/internal/ledger"
)

func TestCut(t *testing.T) {
	for _, c := range []struct {
		text string
		n    int
		want string
	}{
		{"", 0, ""},
		{"whole", 5, "whole"},
		{"whole", 6, "whole"},
		{"longer", 5, "lo…"},
		{"longer", 4, "l…"},
		{"longer", 3, "…"},
		// Below its own length the mark has no room.
		{"longer", 2, "lo"},
		{"longer", 1, "l"},
		{"longer", 0, ""},
		{"longer", -1, ""},
		{"äöü", 2, "ä"},
		{"äöü", 1, ""},
		{"日本語", 3, "…"},
		{"日本語", 6, "日…"},
		{"日本語", 8, "日…"},
		{"日本語", 9, "日本語"},
		{"ab😀cd", 7, "ab…"},
		{"ab😀cd", 8, "ab😀cd"},
	} {
		if got := ledger.Cut(c.text, c.n); got != c.want {
			t.Errorf("Cut(%q, %d) = %q, want %q", c.text, c.n, got, c.want)
		}
	}
}

// cutOracle tries every way to end the text, longest first.
func cutOracle(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for _, mark := range []string{"…", ""} {
		for end := len(s) - 1; end >= 0; end-- {
			if utf8.ValidString(s[:end]) && end+len(mark) <= n {
				return s[:end] + mark
			}
		}
	}
	return ""
}

func TestCutAgainstTryingEveryEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringOfN(rapid.RuneFrom([]rune("a ä日😀…")), 0, 20, -1).Draw(t, "text")
		n := rapid.IntRange(-2, 40).Draw(t, "bytes")
		if got, want := ledger.Cut(s, n), cutOracle(s, n); got != want {
			t.Errorf("Cut(%q, %d) = %q, want %q", s, n, got, want)
		}
	})
}

func TestShorten(t *testing.T) {
	long := strings.Repeat("x", 500)
	for name, c := range map[string]struct{ arguments, want string }{
		"empty":                   {"", ""},
		"blank":                   {" \n\t", ""},
		"empty object":            {"{}", "{}"},
		"order of members":        {`{"b":1,"a":2}`, `{"b":1,"a":2}`},
		"whitespace":              {"{\n  \"path\": \"a b\",\n  \"n\": 3\n}\n", `{"path":"a b","n":3}`},
		"blanks in a string":      {`{"a":"x  y\tz"}`, `{"a":"x  y\tz"}`},
		"blanks in a nested one":  {"{\"a\": [\"x  y\",\n 2]}", `{"a":["x  y",2]}`},
		"numbers":                 {`{"a":1.0,"b":1e400,"c":9223372036854775808}`, `{"a":1.0,"b":1e400,"c":9223372036854775808}`},
		"duplicate members":       {`{"a":1,"a":2}`, `{"a":1,"a":2}`},
		"escapes":                 {`{"a":"\u00e9\ud800\/","\u0062":"<&>"}`, `{"a":"\u00e9\ud800\/","\u0062":"<&>"}`},
		"angle brackets in names": {`{"<a&b>":1}`, `{"<a&b>":1}`},
		"a name with a quote":     {`{"a\"b" : 1, "" : 2}`, `{"a\"b":1,"":2}`},
		"long value":              {`{"a":"` + long + `","b":1}`, `{"a":"` + long[:92] + `…,"b":1}`},
		"long list":               {`{"a":[` + strings.Repeat("10, ", 60) + `1]}`, `{"a":[` + strings.Repeat("10,", 30) + "10…}"},
		"array":                   {`[1, 2]`, `[1, 2]`},
		"string":                  {`"ls  -l"`, `"ls -l"`},
		"no JSON":                 {"*** Begin Patch\n*** End Patch", "*** Begin Patch *** End Patch"},
		"no JSON, long":           {long, long[:197] + "…"},
		"object that breaks off":  {`{"a": 1, "b`, `{"a": 1, "b`},
		"ends behind a value":     {`{"a": 1`, `{"a": 1`},
		"ends behind a name":      {`{"a" : `, `{"a" :`},
		"wrong bracket":           {`{"a": 1]`, `{"a": 1]`},
		"text behind the object":  {`{"a": 1} and more`, `{"a": 1} and more`},
		"two objects":             {`{"a": 1}{"b": 2}`, `{"a": 1}{"b": 2}`},
	} {
		if got := ledger.Shorten(c.arguments); got != c.want {
			t.Errorf("%s: Shorten(%q)\n got %s\nwant %s", name, c.arguments, got, c.want)
		}
	}
}

// What was left out is marked wherever the room ends.
func TestShortenMarksMembersLeftOut(t *testing.T) {
	for size := 85; size <= 96; size++ {
		a := fmt.Sprintf(`{"a":%q,"b":%q,"c":1}`, strings.Repeat("x", size-2), strings.Repeat("y", size-2))
		got := ledger.Shorten(a)
		if len(a) <= 200 {
			if got != a {
				t.Errorf("%d bytes are cut: %s", len(a), got)
			}
			continue
		}
		if len(got) > 200 || !strings.HasSuffix(got, "…") {
			t.Errorf("%d bytes: %s", len(a), got)
		}
	}
	exactly := `{"` + strings.Repeat("n", 194) + `":1`
	if got, want := ledger.Shorten(exactly+`,"b":2}`), exactly[:197]+"…"; len(exactly) != 199 || got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	exactly = `{"` + strings.Repeat("n", 195) + `":1`
	if got, want := ledger.Shorten(exactly+`,"b":2}`), exactly[:197]+"…"; len(exactly) != 200 || got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func FuzzShorten(f *testing.F) {
	for _, s := range []string{
		"", "{", `{"a"`, `{"a":}`, `{"a":1,}`, `{ "a" : [1, {"b":"c  d"}] }`, "{\"a\":\"\xff\"}", `{"ä":"日本語"}`,
		"plain text\nin lines", `{"a":"` + strings.Repeat("日", 90) + `"}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := ledger.Shorten(s)
		if len(got) > 200 {
			t.Errorf("%d bytes", len(got))
		}
		if strings.ContainsAny(got, "\n\r") {
			t.Errorf("%q is more than a line", got)
		}
		if utf8.ValidString(s) && !utf8.ValidString(got) {
			t.Errorf("%q splits a rune", got)
		}
		if json.Valid([]byte(s)) && strings.HasPrefix(strings.TrimLeft(s, " \t\r\n"), "{") && !strings.Contains(got, "…") {
			var a, b any
			if json.Unmarshal([]byte(s), &a) == nil && (json.Unmarshal([]byte(got), &b) != nil || fmt.Sprint(a) != fmt.Sprint(b)) {
				t.Errorf("%s became %s", s, got)
			}
		}
	})
}
