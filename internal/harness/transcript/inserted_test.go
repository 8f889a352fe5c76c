package transcript

import (
	"strings"
	"testing"
)

func TestElements(t *testing.T) {
	names := Tags("note", "permissions", "hook_prompt")
	for text, want := range map[string]string{
		"":                                     "",
		"words":                                "",
		"<note>a</note>":                       "note",
		" \n<note>a</note>\n<note>b</note> ":   "note note",
		"<note>a</note> words":                 "",
		"words <note>a</note>":                 "",
		"<note>a":                              "",
		"<note":                                "",
		"<note/>":                              "note",
		"<note />words":                        "",
		"<other>a</other>":                     "",
		"<note>a</note><other>a</other>":       "",
		"<note>a</note>b</note>":               "",
		"<permissions x>a</permissions x>":     "permissions",
		`<hook_prompt id="1>">a</hook_prompt>`: "hook_prompt",
		"<>":                                   "",
		"</note>":                              "",
		"<note><note>a</note></note>":          "", // a human's, to be safe
	} {
		found, ok := Elements(text, names, nil)
		if got := strings.Join(found, " "); got != want || ok != (want != "") || Inserted(text, names, nil) != ok {
			t.Errorf("%q: %q %v", text, got, ok)
		}
	}
}

// A closing tag that repeats a second word may be anywhere in the rest of a text, so not every text of very many
// elements is searched for it.
func TestManyElements(t *testing.T) {
	names := Tags("note")
	const element = "<note a>b</note>\n"
	if found, ok := Elements(strings.Repeat(element, 100), names, nil); !ok || len(found) != 100 {
		t.Errorf("%d elements", len(found))
	}
	if Inserted(strings.Repeat(element, 100_000), names, nil) {
		t.Error("all of very many elements were searched for")
	}
	if !Inserted(strings.Repeat("<note>b</note>\n", 100_000), names, nil) {
		t.Error("elements without a second word need no search")
	}
}

func TestOutput(t *testing.T) {
	outputs := Tags("stdout", "stderr")
	names := Tags("stdout", "stderr", "hint")
	for text, want := range map[string]string{
		"": "", "<": "", ">": "", "<stdout>": "", "</stdout>": "", "words": "",
		"<stdout>a</stdout>": "stdout", " <stdout>a</stdout> Obey.\n<stderr>b</stderr>\n": "stdout", `<stdout id="1">a</stdout>Obey.</stdout>`: "stdout",
		"<stdout a>b</stdout a>Obey.</stdout a>": "stdout", "<stdout>a</stdout><hint>b</hint>": "stdout hint",
		"<stdout>a</stdout> words": "", "words <stdout>a</stdout>": "", "<stdout>a</note>": "", "<note>a</stdout>": "", "<stdout>a<stdout>": "",
		"<hint>a</hint> words <stdout>b</stdout>": "", "<stdout>a</stdout> words <hint>b</hint>": "", "<hint>a</hint>b</hint>": "",
	} {
		found, ok := Elements(text, names, outputs)
		if got := strings.Join(found, " "); ok != (want != "") || ok && got != want {
			t.Errorf("%q: %q %v", text, got, ok)
		}
	}
}

func TestAsked(t *testing.T) {
	for text, want := range map[string][2]string{
		"":                                       {},
		"words":                                  {},
		"</ask>":                                 {},
		"<ask>a":                                 {},
		" <ask>\na\n</ask>\n":                    {"", "<ask>\na\n</ask>"},
		"<ask>a</b><ask>c</ask>":                 {"", "<ask>a</b><ask>c</ask>"}, // a user may name the element
		"<files>a</files>\n<ask>b</ask>":         {"<files>a</files>", "<ask>b</ask>"},
		"<files>a</files>\n<ask>b <ask> c</ask>": {"<files>a</files>", "<ask>b <ask> c</ask>"},
		"<files></files><ask>a</ask></files><ask>b</ask>": {"<files></files><ask>a</ask></files>", "<ask>b</ask>"},
		"<files>a</files> Why <ask>b</ask>":               {},
		"Why <files>a</files><ask>b</ask>":                {},
		"<files>a</files><ask>b</ask> Why":                {},
	} {
		before, asked, ok := Asked(text, "ask")
		if got := [2]string{before, asked}; got != want || ok != (want[1] != "") {
			t.Errorf("%q: %q %v", text, got, ok)
		}
	}
}
