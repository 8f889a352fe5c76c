package transcript_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/contextd/contextd/internal/harness/transcript"
)

func decoded(t interface{ Fatalf(string, ...any) }, raw []byte) any {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
	return v
}

func jsonValue(depth int) *rapid.Generator[any] {
	text := rapid.SampledFrom([]string{
		"", "x", "type", "a\"b\\c\u0000<é", strings.Repeat("long é ", 30), strings.Repeat("long é ", 31) + "end", "pre" + strings.Repeat("long é ", 30),
	})
	number := rapid.SampledFrom([]string{"1", "1.0", "1e400", "9007199254740993"})
	all := []*rapid.Generator[any]{
		rapid.Just[any](nil), rapid.Map(rapid.Bool(), func(b bool) any { return b }),
		rapid.Map(text, func(s string) any { return s }), rapid.Map(number, func(s string) any { return json.Number(s) }),
	}
	if depth > 0 {
		inner := jsonValue(depth - 1)
		all = append(all,
			rapid.Map(rapid.SliceOfN(inner, 0, 5), func(l []any) any { return l }),
			rapid.Map(rapid.MapOfN(rapid.SampledFrom([]string{"type", "a", "b", "ü\n", "=", "in"}), inner, 0, 4), func(m map[string]any) any { return m }))
	}
	return rapid.OneOf(all...)
}

// TestAmend: for any two values, Amend with their Difference turns the one into the other.
func TestAmend(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base, err1 := json.Marshal(jsonValue(4).Draw(t, "base"))
		native, err2 := json.MarshalIndent(jsonValue(4).Draw(t, "native"), "", " ")
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		d := transcript.Difference(base, native)
		if d == nil {
			if !reflect.DeepEqual(decoded(t, base), decoded(t, native)) {
				t.Fatalf("no difference between %s and %s", base, native)
			}
			return
		}
		got, err := transcript.Amend(base, d)
		if err != nil {
			t.Fatalf("%v: %s", err, d)
		}
		if !reflect.DeepEqual(decoded(t, got), decoded(t, native)) {
			t.Fatalf("%s with %s is %s", base, d, got)
		}
	})
}

func TestDifference(t *testing.T) {
	var digits strings.Builder
	for i := range 70 {
		fmt.Fprintf(&digits, "%03d", i)
	}
	long := digits.String()
	tests := []struct{ base, native, want string }{
		{`{"a":1,"b":[1,{"type":"x"}]}`, `{ "b" : [ 1, {"type":"x"} ], "a":1 }`, ``},
		{`{"a":"\u003c"}`, `{"a":"<"}`, ``},
		{`{"a":1,"b":"xxxxxxxxx"}`, `{"a":1.0,"b":"xxxxxxxxx"}`, `{"set":{"a":1.0}}`},
		{`{"a":1,"c":"` + long + `"}`, `{"b":null,"c":"` + long + `"}`, `{"set":{"b":null},"del":["a"]}`},
		{`{"a":1}`, `{"a":2,"a":1}`, ``},
		{`[{"type":"x","t":"` + long + `"},{"type":"z"}]`, `[{"type":"y"},{"type":"x","t":"` + long + `","n":1}]`, `{"cut":[1],"put":{"0":{"type":"y"}},"at":{"1":{"set":{"n":1}}}}`},
		{`"` + long + `"`, `"<` + long + `>"`, `{"text":["<",0,210,">"]}`},
		{`7`, `{"a":1}`, `{"=":{"a":1}}`},
	}
	for _, tt := range tests {
		if got := string(transcript.Difference([]byte(tt.base), []byte(tt.native))); got != tt.want {
			t.Errorf("from %s to %s: %s, want %s", tt.base, tt.native, got, tt.want)
		}
	}
}

// TestAmendUnfit: a difference of another base is an error.
func TestAmendUnfit(t *testing.T) {
	for _, d := range []string{
		``, `7`, `{`, `{"del":7}`, `{"in":{"x":{"=":1}}}`, `{"in":{"a":7}}`, `{"in":{"l":{"cut":[2]}}}`, `{"in":{"l":{"put":{"9":1}}}}`,
		`{"in":{"l":{"at":{"-1":{"=":1}}}}}`, `{"in":{"a":{"set":{"x":1}}}}`, `{"in":{"s":{"text":["",0,9,""]}}}`, `{"in":{"s":{"text":[]}}}`,
	} {
		_, err := transcript.Amend([]byte(`{"a":1,"l":[1],"s":"é"}`), []byte(d))
		var unfit *transcript.AmendError
		if !errors.As(err, &unfit) {
			t.Errorf("%s gives %v", d, err)
		}
	}
}

func FuzzAmend(f *testing.F) {
	f.Add([]byte(`{"a":[1,"x"]}`), []byte(`{"in":{"a":{"cut":[0]}}}`))
	f.Add([]byte(`"abc"`), []byte(`{"text":["",0,2,"é"]}`))
	f.Fuzz(func(t *testing.T, base, d []byte) {
		got, err := transcript.Amend(base, d)
		if err == nil && !transcript.Valid(got) {
			t.Errorf("not JSON: %s", got)
		}
		if transcript.Valid(base) && transcript.Valid(d) {
			diff := transcript.Difference(bytes.TrimSpace(base), bytes.TrimSpace(d))
			if diff == nil {
				return
			}
			if _, err := transcript.Amend(base, diff); err != nil {
				t.Errorf("from %s to %s: %s: %v", base, d, diff, err)
			}
		}
	})
}

// The elements that are put into a list do not each move those after them: that would take minutes here.
func TestAmendManyElements(t *testing.T) {
	const n = 200_000
	var put strings.Builder
	for i := range n {
		fmt.Fprintf(&put, `,"%d":1`, i)
	}
	base := "[" + strings.Repeat(",0", 2*n)[1:] + "]"
	amended, err := transcript.Amend([]byte(base), []byte(`{"cut":[0,2],"put":{`+put.String()[1:]+`}}`))
	if want := "[" + strings.Repeat(",1", n)[1:] + strings.Repeat(",0", 2*n-2) + "]"; err != nil || string(amended) != want {
		t.Errorf("%d bytes, not %d: %v", len(amended), len(want), err)
	}
}
