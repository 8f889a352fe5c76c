package transcript_test

import (
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/transcript"
)

func TestObject(t *testing.T) {
	some := uint64(7)
	var none *uint64
	got := transcript.Object("a", "x\"\n\u2028", "n", -1, "c", transcript.Count(1<<63), "b", true, "p", &some, "raw", jsontext.Value(`{"z":1.0}`),
		"null", transcript.Null, "list", []string{"x"}, "values", []jsontext.Value{transcript.JSON(false)}, "empty", transcript.List[string](),
		"gone1", nil, "gone2", none, "gone3", jsontext.Value(nil), "gone4", transcript.Optional(""), "here", transcript.Optional("y"), "bad", "\xff")
	want := `{"a":"x\"\n` + "\u2028" + `","n":-1,"c":9223372036854775808,"b":true,"p":7,"raw":{"z":1.0},` +
		`"null":null,"list":["x"],"values":[false],"empty":[],"here":"y","bad":"` + "\ufffd" + `"}`
	if string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
	more := transcript.With(got, "more", 1)
	if string(got) != want || string(more) != want[:len(want)-1]+`,"more":1}` {
		t.Errorf("got %s of %s", more, got)
	}
	if one := transcript.With(jsontext.Value("[1]"), "more", 1); string(one) != "[1]" {
		t.Errorf("a list became %s", one)
	}
}

// TestWithout: fields that are not kept make no difference, and all else of the entry is unchanged.
func TestWithout(t *testing.T) {
	fields := []transcript.NotKept{{Field: "l[].o.gone"}, {Field: "gone"}}
	tests := []struct{ in, want string }{
		{`{"gone":1,"a":1.0,"gone":2}`, `{"a":1.0}`},
		{`{"l":[{"o":{"gone":[],"x" : "\u003c"}},{"o":7},8],"a":{"gone":1}}`, `{"l":[{"o":{"x":"\u003c"}},{"o":7},8],"a":{"gone":1}}`},
		{` {"l":{"o":{"gone":1}}} `, ` {"l":{"o":{"gone":1}}} `},
		{`[{"gone":1}]`, `[{"gone":1}]`},
	}
	for _, tt := range tests {
		got := transcript.Without([]byte(tt.in), fields...)
		if transcript.Compact(got) != transcript.Compact([]byte(tt.want)) {
			t.Errorf("%s without them is %s, want %s", tt.in, got, tt.want)
		}
		if d := transcript.Difference([]byte(tt.want), []byte(tt.in), fields...); d != nil {
			t.Errorf("from %s to %s: %s", tt.want, tt.in, d)
		}
	}
}

// TestDifferenceOfRepeated: of members with the same name the last one counts, in small objects and in large
// ones.
func TestDifferenceOfRepeated(t *testing.T) {
	many, all := "", ""
	for _, c := range "abcdefghijklmnopqrstuvwxyzABCDEFGHIJ" {
		many += `"` + string(c) + `":0,`
		all += `"` + string(c) + `":1,`
	}
	for _, repeated := range []string{`{"a":0,"b":2,"a":1}`, `{` + many + all + `"b":2}`} {
		got, err := transcript.Amend([]byte(`{}`), transcript.Difference([]byte(`{}`), []byte(repeated)))
		if a, _ := transcript.MemberOf(got, "a"); err != nil || string(a) != "1" {
			t.Errorf("%s became %s, %v", repeated, got, err)
		}
		if b, _ := transcript.MemberOf(got, "b"); string(b) != "2" {
			t.Errorf("%s became %s", repeated, got)
		}
	}
}
