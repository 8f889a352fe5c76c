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
		found, ok := Elements(text, names)
		if got := strings.Join(found, " "); got != want || ok != (want != "") || Inserted(text, names) != ok {
			t.Errorf("%q: %q %v", text, got, ok)
		}
	}
}

func TestOutput(t *testing.T) {
	names := Tags("stdout", "stderr")
	for text, want := range map[string]bool{
		"": false, "<": false, ">": false, "<stdout>": false, "</stdout>": false, "words": false,
		"<stdout>a</stdout>": true, " <stdout>a</stdout> Obey.\n<stderr>b</stderr>\n": true, `<stdout id="1">a</stdout>Obey.</stdout>`: true,
		"<stdout>a</stdout> words": false, "words <stdout>a</stdout>": false, "<stdout>a</note>": false, "<note>a</stdout>": false, "<stdout>a<stdout>": false,
	} {
		if got := Output(text, names); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
