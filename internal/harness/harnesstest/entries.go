package harnesstest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contextd/contextd/internal/harness/transcript"
)

// LineEntries splits a JSON Lines file, and skips what is not JSON. The kind of an entry is its member "type",
// followed by "/" and the member "subtype" if there is one.
func LineEntries(file []byte) ([]Entry, error) {
	var entries []Entry
	for line := range bytes.Lines(file) {
		dec := json.NewDecoder(bytes.NewReader(line))
		dec.UseNumber()
		for {
			var v any
			if dec.Decode(&v) != nil {
				break
			}
			entries = append(entries, entryOf(v))
		}
	}
	return entries, nil
}

func entryOf(v any) Entry {
	e := Entry{Value: v}
	m, ok := v.(map[string]any)
	if !ok {
		return e
	}
	e.Kind, _ = m["type"].(string)
	if sub, _ := m["subtype"].(string); sub != "" {
		e.Kind += "/" + sub
	}
	if e.ID, ok = m["uuid"].(string); !ok {
		e.ID, _ = m["id"].(string)
	}
	return e
}

// comparison is the outcome of compareEntries.
type comparison struct {
	// Equal counts the entries that were compared and are equal, by kind.
	Equal map[string]int
	// Repeated counts the original entries that repeat an earlier one.
	Repeated    int
	Differences []string
}

// compareEntries compares two files entry by entry, in order. It ignores what the table exempts, and entries
// of the original that repeat an earlier one.
func compareEntries(original, written []Entry, exempt []transcript.NotKept) comparison {
	c := comparison{Equal: map[string]int{}}
	want, got := prune(original, exempt), prune(written, exempt)
	seen := map[string]bool{}
	for _, w := range want {
		switch {
		case len(got) > 0 && w.Kind == got[0].Kind && reflect.DeepEqual(w.Value, got[0].Value):
			c.Equal[w.Kind]++
			got = got[1:]
		case w.ID != "" && seen[w.ID]:
			c.Repeated++
		case len(got) == 0:
			c.Differences = append(c.Differences, fmt.Sprintf("missing: %s %s", w.Kind, show(w.Value)))
		default:
			c.Differences = append(c.Differences, fmt.Sprintf("%s %s: %s", w.Kind, w.ID, cmp.Diff(w.Value, got[0].Value)))
			got = got[1:]
		}
		seen[w.ID] = true
		if len(c.Differences) > 20 {
			return c
		}
	}
	for _, g := range got {
		c.Differences = append(c.Differences, fmt.Sprintf("not in the original: %s %s", g.Kind, show(g.Value)))
	}
	return c
}

// prune removes what the table exempts. It changes the values in place.
func prune(entries []Entry, exempt []transcript.NotKept) []Entry {
	var out []Entry
next:
	for _, e := range entries {
		for _, row := range exempt {
			if !row.Covers(e.Kind) {
				continue
			}
			if row.Field == "" {
				continue next
			}
			remove(e.Value, strings.Split(row.Field, "."))
		}
		out = append(out, e)
	}
	return out
}

func remove(v any, path []string) {
	name, list := strings.CutSuffix(path[0], "[]")
	m, ok := v.(map[string]any)
	if !ok {
		return
	}
	if len(path) == 1 {
		delete(m, name)
		return
	}
	if !list {
		remove(m[name], path[1:])
		return
	}
	all, _ := m[name].([]any)
	for _, element := range all {
		remove(element, path[1:])
	}
}

func show(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%.300s", b)
}

func testEntries(t *testing.T, h Subject, data []byte, tr transcript.Transcript) {
	t.Helper()
	if n := RoundTrip(t, h, data, tr); n == 0 {
		t.Error("no entry was compared")
	}
}

// RoundTrip compares the file that is written from a transcript with the one that it was read from, and
// returns how many entries are equal.
func RoundTrip(t testing.TB, h Subject, data []byte, tr transcript.Transcript) int {
	t.Helper()
	split := h.Entries
	if split == nil {
		split = LineEntries
	}
	written, _ := write(t, h, tr)
	compare := func(damage func([]Entry) []Entry) comparison {
		a, err := split(data)
		if err != nil {
			t.Fatal(err)
		}
		b, err := split(written)
		if err != nil {
			t.Fatal(err)
		}
		return compareEntries(a, damage(b), h.NotKept)
	}
	c := compare(func(e []Entry) []Entry { return e })
	for _, d := range c.Differences {
		t.Error(d)
	}
	if c.Repeated > tr.DroppedDuplicates {
		t.Errorf("%d entries stand twice, and the transcript says that %d do", c.Repeated, tr.DroppedDuplicates)
	}
	n := 0
	for _, k := range c.Equal {
		n += k
	}
	t.Logf("%d entries are equal: %v; %d stood twice", n, c.Equal, c.Repeated)
	// Check that the comparison detects a wrong file.
	for name, damage := range map[string]func([]Entry) []Entry{
		"without an entry": func(e []Entry) []Entry {
			e = prune(e, h.NotKept)
			return slices.Delete(e, len(e)/2, len(e)/2+1)
		},
		"with a text changed": func(e []Entry) []Entry {
			e = prune(e, h.NotKept)
			e[len(e)/2].Value = changed(e[len(e)/2].Value)
			return e
		},
	} {
		if n > 0 && len(compare(damage).Differences) == 0 {
			t.Errorf("a file %s passes for equal", name)
		}
	}
	return n
}

// changed returns the value with its last, most deeply nested member replaced.
func changed(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if all := slices.Sorted(maps.Keys(v)); len(all) > 0 {
			last := all[len(all)-1]
			v[last] = changed(v[last])
			return v
		}
	case []any:
		if len(v) > 0 {
			v[len(v)-1] = changed(v[len(v)-1])
			return v
		}
	}
	return "changed"
}
