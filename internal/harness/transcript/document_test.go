package transcript_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/contextd/contextd/internal/harness/transcript"
)

func readObject(r io.Reader) (got []string, err error) {
	warn := func(line int, format string, args ...any) {
		got = append(got, fmt.Sprintf("%d warning: "+format, append([]any{line}, args...)...))
	}
	err = transcript.ReadObject(r, warn, "list",
		func(name string, value jsontext.Value, line int) {
			got = append(got, fmt.Sprintf("%d %s=%s", line, name, value))
		},
		func(value jsontext.Value, line int) { got = append(got, fmt.Sprintf("%d element %s", line, value)) })
	return got, err
}

func TestReadObject(t *testing.T) {
	tests := []struct {
		name, in string
		want     []string // a warning's beginning
	}{
		{
			"lines of members and elements", "{\n \"a\": [1,\n 2],\n\n \"list\": [\n  {\"x\":\n   1},\n\n  3\n ],\n \"b\": null }\n",
			[]string{"2 a=[1,\n 2]", "6 element {\"x\":\n   1}", "9 element 3", "11 b=null"},
		},
		{"cut off in an element", "{\"list\": [1,\n2,\n{\"x\": ", []string{"1 element 1", "2 element 2", "3 warning: the rest is cut off"}},
		{"cut off between elements", `{"list": [1`, []string{"1 element 1", "1 warning: the rest is cut off"}},
		{"cut off in a member", `{"a": 1, "b`, []string{"1 a=1", "1 warning: the rest is cut off"}},
		{"damaged", "{\"list\": [1,\n oops]}", []string{"1 element 1", "2 warning: the rest is cut off or not JSON"}},
		{
			"escapes that JSON does not have", "{\"list\": [\"a\\q\\\\q\\n\",\n \"\\x1b[0m\\u12\\u00e9\", 3],\n \"b\": \"\\u\"}",
			[]string{
				`1 element "a\\q\\q\n"`, "1 warning: an escape that JSON does not have", `2 element "\\x1b[0m\\u12\u00e9"`,
				"2 element 3", "2 warning: an escape that JSON does not have", `3 b="\\u"`, "3 warning: an escape that JSON does not have",
			},
		},
		{"cut off in an escape", `{"a": 1, "b": "\u00`, []string{"1 a=1", "1 warning: the rest is cut off"}},
		{"another value for the list", `{"list": {"a": 1}, "b": 2}`, []string{"1 warning: a list was expected", "1 b=2"}},
		{"no list", `{"list": null}`, nil},
		{"no object", `[1]`, []string{"1 warning: the file does not hold an object"}},
		{"empty", ``, []string{"1 warning: the rest is cut off"}},
		{"invalid UTF-8", "{\"a\": \"\xff\"}", []string{"1 warning: invalid UTF-8", "1 a=\"\uFFFD\""}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := readObject(iotest.OneByteReader(strings.NewReader(tt.in)))
			if err != nil {
				t.Fatal(err)
			}
			for i := range min(len(got), len(tt.want)) {
				if strings.Contains(tt.want[i], "warning") {
					got[i] = got[i][:min(len(got[i]), len(tt.want[i]))]
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadObjectFails(t *testing.T) {
	broken := errors.New("broken pipe")
	if _, err := readObject(io.MultiReader(strings.NewReader(`{"list": [1,`), iotest.ErrReader(broken))); !errors.Is(err, broken) {
		t.Errorf("got %v, want the reader's error", err)
	}
}

// TestEach reads objects one after another. Damage of one that is a line of its own does not lose the next ones.
func TestEach(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		want     []string // a warning's beginning
	}{
		{"lines", "{\"a\":1}\n\n{\"b\":\n2} {\"c\":3}", []string{"1 a=1", "4 b=2", "4 c=3"}},
		{"an escape that JSON does not have", "{\"a\":1}\n{\"b\":2,\"c\":\"\\x\"}\n{\"d\":4}\n", []string{"1 a=1", "2 b=2", `2 c="\\x"`, "2 warning: an escape that JSON does not have", "3 d=4"}},
		{"half an escape, twice", "{\"a\":1}\n{\"b\":\"\\u12\"}\r\n{\"b\":\"\\u12\"}\n{\"d\":4}", []string{"1 a=1", `2 b="\\u12"`, "2 warning: an escape", `3 b="\\u12"`, "3 warning: an escape", "4 d=4"}},
		{"a word that is no value", "{\"a\":1}\n{\"b\":2,\"c\":x}\n{\"d\":4}\n", []string{"1 a=1", "2 b=2", "2 warning: not JSON, the rest of the line was not read", "3 d=4"}},
		{"two of them", "{\"a\":1}\n{\"b\":x}\r\n{\"b\":x}\n{\"d\":4}", []string{"1 a=1", "2 warning: not JSON, the rest", "3 warning: not JSON, the rest", "4 d=4"}},
		{"a line that was cut in a string", "{\"a\":1}\n{\"b\":\"c\n{\"d\":4}\n", []string{"1 a=1", "2 warning: not JSON, the rest", "3 d=4"}},
		{"a line that was cut between values", "{\"a\":1}\n{\"b\":2,\n{\"d\":4}\n", []string{"1 a=1", "2 b=2", "2 warning: not JSON, the rest", "3 d=4"}},
		{"a line that is no JSON", "{\"a\":1}\noops\n{\"d\":4}\n", []string{"1 a=1", "2 warning: not JSON, the rest", "3 d=4"}},
		{"a file of one value", "{\"a\":x,\n\"b\":2}\n{\"d\":4}\n", []string{"1 warning: the rest is cut off"}},
		{"no line that begins a value", "{\"a\":1}\n{\"b\":x,\n\"c\":3}\n", []string{"1 a=1", "2 warning: the rest is cut off"}},
		{"the last line", "{\"a\":1}\n{\"b\":x}", []string{"1 a=1", "2 warning: the rest is cut off"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, in := range []io.Reader{strings.NewReader(tt.in), iotest.OneByteReader(strings.NewReader(tt.in))} {
				var got []string
				doc := transcript.NewDocument(in, func(line int, format string, args ...any) {
					got = append(got, fmt.Sprintf("%d warning: "+format, append([]any{line}, args...)...))
				})
				err := doc.Each(func(byte) (bool, error) {
					for doc.More() {
						name, err := doc.Key()
						if err != nil {
							return false, err
						}
						value, line, err := doc.Value()
						if err != nil {
							return false, err
						}
						got = append(got, fmt.Sprintf("%d %s=%s", line, name, value))
					}
					return true, doc.Close()
				})
				if err != nil {
					t.Fatal(err)
				}
				for i := range min(len(got), len(tt.want)) {
					got[i] = got[i][:min(len(got[i]), len(tt.want[i]))]
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
		})
	}
}
