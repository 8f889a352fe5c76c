package ledger_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/contextd/contextd/internal/ledger"
)

func identifiers(text string) []string {
	var names []string
	ledger.Identifiers(text, func(start, end int) bool {
		names = append(names, text[start:end])
		return true
	})
	return names
}

func TestIdentifiers(t *testing.T) {
	for text, want := range map[string]string{
		// Names.
		"/usr/bin/env":                      "/usr/bin/env",
		"see internal/log/event.go, please": "internal/log/event.go",
		"event.go:12:4: undefined":          "event.go:12:4",
		".github/workflows":                 ".github/workflows",
		".gitignore":                        ".gitignore",
		"./foobar":                          "./foobar",
		"../foobar":                         "../foobar",
		".../log/event.go":                  ".../log/event.go",
		"https://example.org/a?b=c":         "https://example.org/a",
		"NewConversation(x)":                "NewConversation",
		"newView":                           "newView",
		"max_tokens: 12":                    "max_tokens",
		"__init__":                          "__init__",
		"_private":                          "_private",
		"session-1234":                      "session-1234",
		"deadbeef0123":                      "deadbeef0123",
		"a1b2c3":                            "a1b2c3",
		"toolu_01ABC, call_9":               "toolu_01ABC call_9",
		"issue#42":                          "issue#42",
		"std::vector":                       "std::vector",
		"123456":                            "123456",
		"192.168.0.1":                       "192.168.0.1",
		"(v1.2.3-rc1)":                      "v1.2.3-rc1",
		`{"file_path":"a/b.txt"}`:           "file_path a/b.txt",
		"naïve/päth_x/longer":               "th_x/longer",
		// Prose.
		"":                           "",
		"hello wonderful world":      "",
		"Sentence. Another. END.":    "",
		"UPPERCASE":                  "",
		"Title":                      "",
		"year 2024":                  "",
		"12345":                      "",
		"a/b.c":                      "",
		"foo_b":                      "",
		"sentence.":                  "",
		"--verbose":                  "",
		"####heading":                "",
		"trailing:::":                "",
		"wait...":                    "",
		"...because":                 "",
		"....-because":               "",
		"------ ______ ______/_____": "",
		"........ /////// _._._._":   "",
		"äöüäöüäöü":                  "",
		// Ends.
		"-internal/log-":       "internal/log",
		"#anchor-name#":        "anchor-name",
		":key_name:":           "key_name",
		"/etc/passwd/":         "/etc/passwd",
		"--dry-run.":           "dry-run",
		"..max_tokens":         "..max_tokens",
		"...max_tokens":        "max_tokens",
		"foobar_":              "foobar_",
		"word-/":               "",
		"abcdef--":             "",
		"first_one\nsecond_it": "first_one second_it",
	} {
		if got := strings.Join(identifiers(text), " "); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestIdentifiersStopsWhereItIsTold(t *testing.T) {
	calls := 0
	ledger.Identifiers("first_name second_name third_name", func(int, int) bool {
		calls++
		return calls < 2
	})
	if calls != 2 {
		t.Errorf("called %d times", calls)
	}
}

var (
	wordRuns = regexp.MustCompile(`[A-Za-z0-9_./:#-]+`)
	tail     = regexp.MustCompile(`[./:#-]+$`)
	front    = regexp.MustCompile(`^([:#-]|\.{3,}($|[^./]))`)
	anything = regexp.MustCompile(`[A-Za-z0-9]`)
	telling  = regexp.MustCompile(`^[_./:#-]|[A-Za-z0-9].*[_./:#-]|[a-z][A-Z]|[0-9].*[0-9].*[0-9]`)
)

// identifiersOracle says what an identifier is in regular expressions.
func identifiersOracle(text string) []string {
	var names []string
	for _, word := range wordRuns.FindAllString(text, -1) {
		word = tail.ReplaceAllString(word, "")
		for front.MatchString(word) {
			if word[0] != '.' {
				word = word[1:]
			} else {
				word = strings.TrimLeft(word, ".")
			}
		}
		if len(word) >= ledger.MinIdentifier && anything.MatchString(word) && telling.MatchString(word) {
			names = append(names, word)
		}
	}
	return names
}

func checkIdentifiers(t interface {
	Errorf(string, ...any)
}, text string) {
	last := 0
	ledger.Identifiers(text, func(start, end int) bool {
		if start < last || end > len(text) || end-start < ledger.MinIdentifier {
			t.Errorf("%q: [%d:%d] behind %d", text, start, end, last)
		}
		last = end
		return true
	})
	if got, want := identifiers(text), identifiersOracle(text); !slices.Equal(got, want) {
		t.Errorf("%q: %q, want %q", text, got, want)
	}
}

func TestIdentifiersAgainstRegexps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		checkIdentifiers(t, rapid.StringOfN(rapid.RuneFrom([]rune("aabBC019_./:#- ä\n")), 0, 60, -1).Draw(t, "text"))
	})
}

func FuzzIdentifiers(f *testing.F) {
	for _, s := range []string{"", "...", "....a", "/a/b/c:1", "_______", "a\x00bcdef_g", "日本/語_語abcDef", "x.y.z...#-"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) { checkIdentifiers(t, text) })
}
