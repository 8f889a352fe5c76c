package render

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestAppendString(t *testing.T) {
	for s, want := range map[string]string{
		"":                         `""`,
		"plain <b>&amp;</b> 'x'/y": `"plain <b>&amp;</b> 'x'/y"`,
		`say "\"`:                  `"say \"\\\""`,
		"\b\f\n\r\t":               `"\b\f\n\r\t"`,
		"\x00\x01\x0b\x1f":         `"\u0000\u0001\u000b\u001f"`,
		"\x7f":                     "\"\x7f\"",
		"äöü 日本 😀":                 `"äöü 日本 😀"`,
		"\u2028\u2029\ufeff":       "\"\u2028\u2029\ufeff\"",
		"\ufffd stands":            "\"\ufffd stands\"",
		"a\xffb":                   "\"a\ufffdb\"",
		"\xe6\x97":                 "\"\ufffd\ufffd\"",
		"\xed\xa0\x80":             "\"\ufffd\ufffd\ufffd\"", // a surrogate in UTF-8
		"日\xe6\"\n":                "\"日\ufffd\\\"\\n\"",
	} {
		if got := string(appendString(nil, s)); got != want {
			t.Errorf("%q: %s, want %s", s, got, want)
		}
	}
	if got := string(appendString([]byte("before "), "x")); got != `before "x"` {
		t.Errorf("appended: %s", got)
	}
}

func checkString(t interface {
	Errorf(string, ...any)
}, s string) {
	got := appendString(nil, s)
	var back string
	if err := json.Unmarshal(got, &back); err != nil || back != string([]rune(s)) {
		t.Errorf("%q: %s reads as %q (%v)", s, got, back, err)
	}
	// encoding/json escapes two separators more, and bytes that are no UTF-8.
	var std bytes.Buffer
	e := json.NewEncoder(&std)
	e.SetEscapeHTML(false)
	if err := e.Encode(string([]rune(s))); err != nil {
		t.Errorf("%q: %v", s, err)
	}
	want := strings.TrimSuffix(std.String(), "\n")
	if !strings.ContainsAny(s, "\u2028\u2029") && string(got) != want {
		t.Errorf("%q: %s, want %s", s, got, want)
	}
	if bytes.ContainsFunc(got, func(r rune) bool { return r < ' ' }) {
		t.Errorf("%q: a control character in %q", s, got)
	}
}

func FuzzAppendString(f *testing.F) {
	for _, s := range []string{"", "\"\\", "\x00\x1f\x7f", "\u2028", "\xff\xfe", "日\xe6\x97", "😀"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) { checkString(t, s) })
}

func TestAppendStringRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		checkString(t, string(rapid.SliceOf(rapid.ByteRange(0, 255)).Draw(t, "bytes")))
		checkString(t, rapid.String().Draw(t, "text"))
	})
}

func TestAppendRaw(t *testing.T) {
	deep := strings.Repeat("[", 5000) + strings.Repeat("]", 5000)
	for raw, want := range map[string]string{
		// What is as it is.
		``: ``, `1.0`: `1.0`, `1e400`: `1e400`, `-0`: `-0`, `1E+2`: `1E+2`,
		`9223372036854775808`:         `9223372036854775808`,
		`0.1000000000000000055511151`: `0.1000000000000000055511151`,
		`{"a":1,"a":2,"A":3}`:         `{"a":1,"a":2,"A":3}`,
		`{"b":1,"a":2}`:               `{"b":1,"a":2}`,
		`"\ud800 \udc00\/\u00e9é"`:    `"\ud800 \udc00\/\u00e9é"`,
		`"<&> \u2028"`:                `"<&> \u2028"`,
		"\"a  b\x7f\u2028\"":          "\"a  b\x7f\u2028\"",
		"\"\xff\"":                    "\"\xff\"",
		deep:                          deep,
		// What goes.
		" \t\r\n1 ":                   "1",
		`{ "a b" : [ 1 , "c  d" ] }`:  `{"a b":[1,"c  d"]}`,
		`[ "\" , \\" , " x " ]`:       `["\" , \\"," x "]`,
		"{\r\n\t\"a\": \"{ [ : , \"}": `{"a":"{ [ : , "}`,
		`["\\" , "\\\" " , 1]`:        `["\\","\\\" ",1]`,
		// What is no JSON stays within its bytes.
		`"open  \`: `"open  \`,
		`"`:        `"`,
	} {
		if got := string(appendRaw(nil, raw)); got != want {
			t.Errorf("%q: %s, want %s", raw, got, want)
		}
	}
	if got := string(appendRaw([]byte("before:"), " 1 ")); got != "before:1" {
		t.Errorf("appended: %s", got)
	}
}

// encoding/json's Compact is the oracle: it knows the grammar.
func FuzzAppendRaw(f *testing.F) {
	for _, s := range []string{`{"a": [1.0, 1e400, "\ud800"], "a": null}`, "[\n]", `"\\" `, "\"\xff\u2028\"", ` {"a" : "\"" } `} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		got := appendRaw(nil, raw)
		var want bytes.Buffer
		if err := json.Compact(&want, []byte(raw)); err != nil {
			return
		}
		if string(got) != want.String() {
			t.Errorf("%q: %s, want %s", raw, got, want.String())
		}
	})
}
