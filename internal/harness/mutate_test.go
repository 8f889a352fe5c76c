package harness_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/contextd/contextd/internal/harness"
)

// TestMutations changes the golden inputs in ways that keep them valid JSON: members of other types or
// missing, records and elements that are repeated or moved, ids that are the same. The log must admit what a
// reader makes of them.
func TestMutations(t *testing.T) {
	inputs, err := filepath.Glob("*/testdata/*.in.json*")
	if err != nil {
		t.Fatal(err)
	}
	for _, input := range inputs {
		raw, err := os.ReadFile(input)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.HasSuffix(input, "l")
		name := filepath.Dir(filepath.Dir(input))
		t.Run(input, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				var root any = parseAll(raw, lines)
				for range rapid.IntRange(1, 8).Draw(rt, "mutations") {
					root = mutate(rt, root)
				}
				data := encodeAll(root, lines)
				tr, err := harness.Read(bytes.NewReader(data), name)
				var format *harness.FormatError
				if err != nil && !errors.As(err, &format) {
					rt.Fatalf("unexpected error %v from\n%s", err, data)
				}
				checkTranscript(rt, tr)
				if rt.Failed() {
					rt.Logf("from\n%s", data)
				}
			})
		})
	}
}

// TestLineMutations changes the golden inputs that are text: lines are dropped, repeated, moved or cut, or
// lose the spaces at their end.
func TestLineMutations(t *testing.T) {
	inputs, err := filepath.Glob("*/testdata/*.in.md")
	if err != nil || len(inputs) == 0 {
		t.Fatalf("no inputs: %v", err)
	}
	for _, input := range inputs {
		raw, err := os.ReadFile(input)
		if err != nil {
			t.Fatal(err)
		}
		rapid.Check(t, func(rt *rapid.T) {
			lines := strings.SplitAfter(string(raw), "\n")
			for range rapid.IntRange(1, 8).Draw(rt, "mutations") {
				i, j := rapid.IntRange(0, len(lines)-1).Draw(rt, "i"), rapid.IntRange(0, len(lines)-1).Draw(rt, "j")
				switch rapid.IntRange(0, 4).Draw(rt, "line") {
				case 0:
					lines[i] = ""
				case 1:
					lines = slices.Insert(lines, j, lines[i])
				case 2:
					lines[i], lines[j] = lines[j], lines[i]
				case 3:
					lines[i] = lines[i][:rapid.IntRange(0, len(lines[i])).Draw(rt, "cut")]
				default:
					lines[i] = strings.TrimRight(lines[i], " \n") + "\n"
				}
			}
			tr, err := harness.Read(strings.NewReader(strings.Join(lines, "")), filepath.Dir(filepath.Dir(input)))
			var format *harness.FormatError
			if err != nil && !errors.As(err, &format) {
				rt.Fatalf("unexpected error %v from\n%s", err, strings.Join(lines, ""))
			}
			checkTranscript(rt, tr)
		})
	}
}

// TestRepeatedMembers writes each member of every object in the golden inputs twice, at each depth in turn.
func TestRepeatedMembers(t *testing.T) {
	inputs, err := filepath.Glob("*/testdata/*.in.json*")
	if err != nil || len(inputs) == 0 {
		t.Fatalf("no inputs: %v", err)
	}
	for _, input := range inputs {
		raw, err := os.ReadFile(input)
		if err != nil {
			t.Fatal(err)
		}
		for depth := range 4 {
			var out bytes.Buffer
			for _, v := range parseAll(raw, strings.HasSuffix(input, "l")) {
				out.Write(append(twice(t, v, depth), '\n'))
			}
			tr, err := harness.Read(&out, filepath.Dir(filepath.Dir(input)))
			if err != nil {
				t.Errorf("%s: %v", input, err)
			}
			checkTranscript(t, tr)
		}
	}
}

// twice encodes a value, with the members of objects at the given depth twice.
func twice(t *testing.T, v any, depth int) []byte {
	t.Helper()
	var parts [][]byte
	m, isObject := v.(map[string]any)
	list, isList := v.([]any)
	switch {
	case isObject:
		for _, name := range slices.Sorted(maps.Keys(m)) {
			parts = append(parts, fmt.Appendf(nil, "%q:%s", name, twice(t, m[name], depth-1)))
		}
		if depth == 0 {
			parts = append(parts, parts...)
		}
		return append(append([]byte{'{'}, bytes.Join(parts, []byte{','})...), '}')
	case isList:
		for _, e := range list {
			parts = append(parts, twice(t, e, depth))
		}
		return append(append([]byte{'['}, bytes.Join(parts, []byte{','})...), ']')
	}
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func parseAll(raw []byte, lines bool) []any {
	var all []any
	dec := json.NewDecoder(bytes.NewReader(raw))
	for {
		var v any
		if dec.Decode(&v) != nil {
			break
		}
		all = append(all, v)
	}
	if !lines && len(all) != 1 {
		panic("a document holds one value")
	}
	return all
}

func encodeAll(root any, lines bool) []byte {
	var out bytes.Buffer
	all, ok := root.([]any)
	if !ok || (!lines && len(all) > 1) {
		all = []any{root}
	}
	for _, v := range all {
		b, err := json.Marshal(v)
		if err != nil {
			panic(fmt.Sprint("cannot encode what was decoded: ", err))
		}
		out.Write(append(b, '\n'))
	}
	return out.Bytes()
}

// mutate changes one place of the tree and returns the new one.
func mutate(t *rapid.T, v any) any {
	switch v := v.(type) {
	case map[string]any:
		keys := slices.Sorted(maps.Keys(v))
		if len(keys) == 0 || rapid.IntRange(0, 9).Draw(t, "stop") == 0 {
			return other(t)
		}
		key := rapid.SampledFrom(keys).Draw(t, "key")
		switch rapid.IntRange(0, 6).Draw(t, "member") {
		case 0:
			delete(v, key)
		case 1:
			v[key] = v[rapid.SampledFrom(keys).Draw(t, "from")]
		default:
			v[key] = mutate(t, v[key])
		}
		return v
	case []any:
		if len(v) == 0 || rapid.IntRange(0, 9).Draw(t, "stop") == 0 {
			return other(t)
		}
		i, j := rapid.IntRange(0, len(v)-1).Draw(t, "i"), rapid.IntRange(0, len(v)-1).Draw(t, "j")
		switch rapid.IntRange(0, 6).Draw(t, "element") {
		case 0:
			return slices.Delete(slices.Clone(v), i, i+1)
		case 1:
			return slices.Insert(slices.Clone(v), j, v[i])
		case 2:
			v[i], v[j] = v[j], v[i]
		default:
			v[i] = mutate(t, v[i])
		}
		return v
	}
	return other(t)
}

func other(t *rapid.T) any {
	return rapid.SampledFrom([]any{
		nil, true, false, 0.0, -1.0, 1.5, 1e18, "", "x\x00", "REDACTED", "toolu_1", "call_1", "assistant", "user", "tool", "text",
		"tool_use", "tool_result", "2026-01-01T00:00:00Z", []any{}, []any{"x"}, map[string]any{}, map[string]any{"type": "text", "text": "t"},
	}).Draw(t, "other")
}
