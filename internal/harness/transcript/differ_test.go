package transcript_test

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/contextd/contextd/internal/harness/transcript"
	"github.com/contextd/contextd/internal/harness/transcript/jsonvalue"
)

// built makes the value as a writer builds it, some of it of raw JSON.
func built(t *rapid.T, v any) jsonvalue.Value {
	raw := func() jsonvalue.Value {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return jsonvalue.Raw(string(b))
	}
	switch v := v.(type) {
	case string:
		return jsonvalue.String(v)
	case []any:
		if rapid.IntRange(0, 7).Draw(t, "raw list") == 0 {
			return raw()
		}
		list := jsonvalue.List()
		for _, e := range v {
			list.Append(built(t, e))
		}
		return list
	case map[string]any:
		if rapid.IntRange(0, 7).Draw(t, "raw object") == 0 {
			return raw()
		}
		object := jsonvalue.Object()
		for _, k := range slices.Sorted(maps.Keys(v)) {
			object.Set(k, built(t, v[k]))
		}
		return object
	case nil:
		return jsonvalue.Value{}
	}
	return raw()
}

// changed makes another value that has much in common.
func changed(t *rapid.T, v any) any {
	if rapid.IntRange(0, 5).Draw(t, "change") == 0 {
		return jsonValue(2).Draw(t, "other")
	}
	switch v := v.(type) {
	case []any:
		var out []any
		for _, e := range v {
			if rapid.IntRange(0, 9).Draw(t, "cut") > 0 {
				out = append(out, changed(t, e))
			}
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if rapid.IntRange(0, 9).Draw(t, "delete") > 0 {
				out[k] = changed(t, v[k])
			}
		}
		return out
	}
	return v
}

// TestDiffer holds the Differ to Difference of the base written down. One Differ
// does them all, as a reader's does.
func TestDiffer(t *testing.T) {
	var d transcript.Differ
	rapid.Check(t, func(t *rapid.T) {
		v := jsonValue(4).Draw(t, "base")
		base := built(t, v)
		other := changed(t, v)
		native, err := json.Marshal(other)
		if rapid.Bool().Draw(t, "spaces") {
			native, err = json.MarshalIndent(other, "", "  ")
		}
		if err != nil {
			t.Fatal(err)
		}
		want := transcript.Difference(base.JSON(), native)
		got := d.Difference(&base, native)
		if (got == nil) != (want == nil) || string(got) != string(want) {
			t.Fatalf("from %s to %s: %s, want %s", base.JSON(), native, got, want)
		}
	})
}

func TestDifferStrings(t *testing.T) {
	var d transcript.Differ
	for _, tt := range []struct {
		base, native string
	}{
		{"a\"b\\c/d\n\t\r\b\f", `"a\"b\\c\/d\n\t\r\b\f"`}, {"é😀\u2028", `"\u00e9\ud83d\ude00\u2028"`}, {"é😀", `"\u00E9\ud83d\uDE00"`},
		{"x", `"y"`}, {"x", `"x\n"`}, {"x\n", `"x"`}, {"", `""`}, {"", `"\n"`}, {"\ufffd", `"\ud800"`}, {"\ufffdx", `"\ud800x"`},
		{"\ufffd\n", `"\ud800\n"`}, {"a\x00", `"a\u0000"`}, {"a\xff", `"a\ufffd"`}, {"😀", `"\ud83d"`},
	} {
		base := jsonvalue.Object(jsonvalue.Member{Name: "t", Value: jsonvalue.String(tt.base)})
		native := []byte(`{"t":` + tt.native + `}`)
		want, got := transcript.Difference(base.JSON(), native), d.Difference(&base, native)
		if (got == nil) != (want == nil) || string(got) != string(want) {
			t.Errorf("from %q to %s: %s, want %s", tt.base, tt.native, got, want)
		}
	}
}
