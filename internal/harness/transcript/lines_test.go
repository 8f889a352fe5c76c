package transcript_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/contextd/contextd/internal/harness/transcript"
)

func readLines(r io.Reader) (records, warnings []string, err error) {
	warn := func(line int, format string, args ...any) {
		warnings = append(warnings, fmt.Sprintf("%d: "+format, append([]any{line}, args...)...))
	}
	err = transcript.ReadLines(r, warn, func(rec transcript.Record) {
		var v struct {
			N int `json:"n"`
		}
		if transcript.Decode(rec.JSON, &v) != nil {
			records = append(records, transcript.PositionID(rec)+" shape")
		} else {
			records = append(records, transcript.PositionID(rec)+" "+string(rec.JSON))
		}
	})
	return records, warnings, err
}

func TestReadLines(t *testing.T) {
	long := `{"s":"` + strings.Repeat("long ", 100_000) + `"}`
	tests := []struct {
		name, in string
		records  []string
		warnings []string // beginnings
	}{
		{name: "nothing", in: ""},
		{name: "blank lines", in: "\n \r\n\t\n"},
		{name: "lines with and without an end", in: "{\"n\":1}\r\n{\"n\":2}", records: []string{`line-1 {"n":1}`, `line-2 {"n":2}`}},
		{
			name: "two records on a line", in: "{\"n\":1}{\"n\":2} {\"n\":3}\n{}",
			records:  []string{`line-1 {"n":1}`, `line-1.1 {"n":2}`, `line-1.2 {"n":3}`, `line-2 {}`},
			warnings: []string{"1: the line holds 3 records"},
		},
		{
			name: "a record and half of one", in: "{\"n\":1}{\"n\":\n{\"n\":2}\n",
			records: []string{`line-1 {"n":1}`, `line-2 {"n":2}`}, warnings: []string{"1: not JSON, 5 bytes were not read"},
		},
		{
			name: "cut off", in: "{\"n\":1}\n{\"n\":2,\"s\":\"ab",
			records: []string{`line-1 {"n":1}`}, warnings: []string{"2: the last line is cut off: 14 bytes were not read"},
		},
		{
			name: "rubbish", in: "rubbish\n{\"n\":1}\n}\n",
			records: []string{`line-2 {"n":1}`}, warnings: []string{"1: not JSON, 7 bytes", "3: not JSON, 1 bytes"},
		},
		{name: "another shape", in: "{\"n\":\"x\"}\n7", records: []string{"line-1 shape", "line-2 shape"}},
		{
			name: "another shape that is no JSON either", in: "{\"n\":\"x\"\n[\n",
			warnings: []string{"1: not JSON, 8 bytes", "2: not JSON, 1 bytes"},
		},
		{
			name: "invalid UTF-8", in: "{\"s\":\"a\xffb\"}\n",
			records: []string{"line-1 {\"s\":\"a\uFFFDb\"}"}, warnings: []string{"1: invalid UTF-8"},
		},
		{
			name: "half surrogates", in: `{"s":"\ud83d\ude00 \\ud83d"}` + "\n" + `{"s":"\ude00"}` + "\n" + `{"s":"\uD83Dx"}`,
			records:  []string{`line-1 {"s":"\ud83d\ude00 \\ud83d"}`, `line-2 {"s":"\ude00"}`, `line-3 {"s":"\uD83Dx"}`},
			warnings: []string{"2: half of a surrogate pair", "3: half of a surrogate pair"},
		},
		{name: "a name twice", in: `{"n":1,"n":2}`, records: []string{`line-1 {"n":1,"n":2}`}},
		{name: "a long line", in: long + "\n" + long + "\n{\"n\":1}", records: []string{"line-1 " + long, "line-2 " + long, `line-3 {"n":1}`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			records, warnings, err := readLines(strings.NewReader(tt.in))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.records, records); diff != "" {
				t.Errorf("records (-want +got):\n%s", diff)
			}
			if len(warnings) != len(tt.warnings) {
				t.Fatalf("warnings %q, want %q", warnings, tt.warnings)
			}
			for i, w := range tt.warnings {
				if !strings.HasPrefix(warnings[i], w) {
					t.Errorf("warning %q, want %q", warnings[i], w)
				}
			}
			bytewise, _, err := readLines(iotest.HalfReader(strings.NewReader(tt.in)))
			if diff := cmp.Diff(records, bytewise); diff != "" || err != nil {
				t.Errorf("read in small pieces it differs: %v\n%s", err, diff)
			}
		})
	}
}

// TestReadRecords: records are in lines, a list or a member that lists them.
func TestReadRecords(t *testing.T) {
	for _, test := range []struct{ in, want string }{
		{"{\"n\":1}\n{\"n\":2}", `line-1 {"n":1}, line-2 {"n":2}`},
		{" [\n{\"n\":1}, {\n\"n\":2}\n]\n", "line-2 {\"n\":1}, line-2.1 {\n\"n\":2}"},
		{"{\"list\":[{\"n\":1}],\"a\":[]}", `line-1 {"n":1}`},
		{"[]\n{\"n\":1}", `line-1 [], line-2 {"n":1}`},
		{"[{\"n\":1}]\n[1]\n{\"n\":2}\n[{}", `line-1 {"n":1}, line-2 [1], line-3 {"n":2}`},
		{"{\"a\":1,\"list\":[]}\n{\"list\":0}", `line-1 {"a":1,"list":[]}, line-2 {"list":0}`},
	} {
		var got []string
		err := transcript.ReadRecords(strings.NewReader(test.in), "list", func(int, string, ...any) {}, func(r transcript.Record) {
			got = append(got, transcript.PositionID(r)+" "+string(r.JSON))
		})
		if strings.Join(got, ", ") != test.want || err != nil {
			t.Errorf("%s: %q, %v", test.in, got, err)
		}
	}
}

func TestReadLinesFails(t *testing.T) {
	broken := errors.New("broken pipe")
	records, _, err := readLines(io.MultiReader(strings.NewReader("{\"n\":1}\n{\"n\":2}"), iotest.ErrReader(broken)))
	if !errors.Is(err, broken) {
		t.Errorf("got %v, want the reader's error", err)
	}
	if diff := cmp.Diff([]string{`line-1 {"n":1}`}, records); diff != "" {
		t.Error(diff)
	}
}
