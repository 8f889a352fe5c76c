package transcript_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

func TestCompact(t *testing.T) {
	tests := []struct{ in, want string }{
		{"", "{}"},
		{" { \"b\" : 1.0 ,\n\"a\":[ 1e400, 9007199254740993 ,-0 ] } ", `{"b":1.0,"a":[1e400,9007199254740993,-0]}`},
		{`{"s":"a  b\" \\", "t": "\u0041é\/"}`, `{"s":"a  b\" \\","t":"\u0041é\/"}`},
		{`{"a":1,"a":2}`, `{"a":1,"a":2}`},
	}
	for _, tt := range tests {
		if got := transcript.Compact([]byte(tt.in)); got != tt.want {
			t.Errorf("Compact(%q) = %q, want %q", tt.in, got, tt.want)
		}
	}
}

// FuzzCompact compares Compact with that of the standard library.
func FuzzCompact(f *testing.F) {
	for _, s := range []string{`{"a": [1, "x y\\\" z"]}`, " 1 ", `"\\"`, "[\n]"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		if !json.Valid(value) {
			return
		}
		var want bytes.Buffer
		if err := json.Compact(&want, value); err != nil {
			t.Fatal(err)
		}
		if got := transcript.Compact(value); got != want.String() {
			t.Errorf("got %q, want %q", got, want.String())
		}
	})
}

func TestArguments(t *testing.T) {
	tests := []struct {
		in, want string
		ok       bool
	}{
		{"", "{}", true},
		{"  \n", "  \n", false},
		{"{ \"a\" : 1.0 }", "{ \"a\" : 1.0 }", true},
		{" {\"a\":1}\n", " {\"a\":1}\n", true},
		{"\"text\"", "\"text\"", true},
		{"{\"a\":", "{\"a\":", false},
		{"a <b> \x00", "a <b> \x00", false},
		{"{} {}", "{} {}", false},
		{"\uFEFF{}", "\uFEFF{}", false},
		{`{"a":NaN}`, `{"a":NaN}`, false},
	}
	for _, tt := range tests {
		got, ok := transcript.Arguments(tt.in)
		if got != tt.want || ok != tt.ok {
			t.Errorf("Arguments(%q) = %q, %v, want %q, %v", tt.in, got, ok, tt.want, tt.ok)
		}
	}
}

func TestRawArguments(t *testing.T) {
	tests := []struct{ in, want string }{
		{``, "{}"},
		{`null`, "{}"},
		{`{"a": 1.0}`, `{"a":1.0}`},
		{`"{\"a\": 1.0}"`, `{"a": 1.0}`},
		{`"x"`, "x"},
	}
	for _, tt := range tests {
		if got, _ := transcript.RawArguments(json.RawMessage(tt.in)); got != tt.want {
			t.Errorf("RawArguments(%q) = %q, want %q", tt.in, got, tt.want)
		}
	}
}

// FuzzWrapArguments: wrapped arguments are a JSON object, and unwrapping restores the original for any text.
func FuzzWrapArguments(f *testing.F) {
	for _, s := range []string{
		`{}`, `{"a":`, `[1]`, "null", " ", "plain", `{"raw_arguments":"x"}`, `{"raw_arguments":1}`, `{"raw_arguments":null}`,
		`{"raw_arguments":"x","raw_arguments":"y"}`, `{"raw_arguments":"{\"raw_arguments\":\"x\"}"}`, "\uFEFF{}", "\x00", "\u2028<&>",
		strings.Repeat("[", 9500) + strings.Repeat("]", 9500), `{"\u0072aw_arguments":"x"}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, arguments string) {
		if arguments == "" || !utf8.ValidString(arguments) {
			return
		}
		wrapped := transcript.WrapArguments(arguments)
		if !eventlog.IsJSONObject(wrapped) {
			t.Errorf("%q is wrapped as %q", arguments, wrapped)
		}
		if got := transcript.UnwrapArguments(wrapped); got != arguments {
			t.Errorf("%q came back as %q", arguments, got)
		}
	})
}

func TestCount(t *testing.T) {
	tests := []struct {
		in   string
		want string
	}{{"7", "7"}, {"18446744073709551615", "18446744073709551615"}, {"1.9", "1"}, {"1e3", "1000"}, {"-1", "0"}, {"null", "0"}, {`"7"`, "0"}, {"{}", "0"}}
	for _, tt := range tests {
		var v struct {
			N transcript.Count `json:"n"`
		}
		if err := transcript.Decode([]byte(`{"n":`+tt.in+`}`), &v); err != nil || v.N.String() != tt.want {
			t.Errorf("%s is read as %s, %v, want %s", tt.in, v.N, err, tt.want)
		}
	}
}
