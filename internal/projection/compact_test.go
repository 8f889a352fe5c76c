package projection_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/projection"
	"github.com/contextd/contextd/internal/reduce"
)

// lists are those of a record that are written in short.
type lists struct {
	Ranges   projection.Ranges
	Places   projection.Places
	Pointers projection.Pointers
}

// long are the same lists as records held them before.
type long struct {
	Ranges   []projection.Range
	Places   []projection.Place
	Pointers []projection.Pointer
}

func TestListsInShort(t *testing.T) {
	in := lists{
		Ranges: projection.Ranges{{From: 1, To: 1}, {From: 3, To: 6}},
		Places: projection.Places{{Seq: 4}, {Seq: 4, Block: 1}, {Seq: 9}},
		Pointers: projection.Pointers{
			{Seq: 4, Kind: reduce.Redacted, Reducer: "gc", Reason: "old", Reclaimed: 90},
			{Seq: 6, Block: 2, Kind: reduce.Redacted, Reducer: "gc", Reason: "old", Reclaimed: 7},
			{Seq: 7, Kind: reduce.Stubbed, Reducer: "r", Reason: "large", Reclaimed: 1},
		},
	}
	const want = `{"Ranges":"1 2-3","Places":"4 0.1 5","Pointers":{"Did":[{"Kind":4,"Reducer":"gc","Reason":"old"},{"Kind":1,"Reducer":"r","Reason":"large"}],"At":"4:90/0 2.2:7 1:1/1"}}`
	got, err := json.Marshal(in)
	if err != nil || string(got) != want {
		t.Fatalf("%s, %v; want %s", got, err, want)
	}
}

func genLists() *rapid.Generator[lists] {
	seq := rapid.Map(rapid.Uint64(), func(n uint64) eventlog.Seq { return eventlog.Seq(n) })
	block := rapid.IntRange(0, 3)
	return rapid.Custom(func(t *rapid.T) lists {
		return lists{
			Ranges: rapid.SliceOf(rapid.Custom(func(t *rapid.T) projection.Range {
				return projection.Range{From: seq.Draw(t, "from"), To: seq.Draw(t, "to")}
			})).Draw(t, "ranges"),
			Places: rapid.SliceOf(rapid.Custom(func(t *rapid.T) projection.Place {
				return projection.Place{Seq: seq.Draw(t, "seq"), Block: block.Draw(t, "block")}
			})).Draw(t, "places"),
			Pointers: rapid.SliceOf(rapid.Custom(func(t *rapid.T) projection.Pointer {
				return projection.Pointer{
					Seq: seq.Draw(t, "seq"), Block: block.Draw(t, "block"), Kind: rapid.SampledFrom([]reduce.EditKind{1, 4}).Draw(t, "kind"),
					Reducer: rapid.SampledFrom([]string{"", "a"}).Draw(t, "reducer"), Reason: rapid.SampledFrom([]string{"", `"quoted" ü`}).Draw(t, "reason"),
					Reclaimed: rapid.Uint64().Draw(t, "reclaimed"),
				}
			})).Draw(t, "pointers"),
		}
	})
}

// TestListsComeBack holds that whatever a list holds is read as it was, from its short
// form and from the list of objects that records held before.
func TestListsComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := genLists().Draw(t, "lists")
		for _, of := range []any{want, long{want.Ranges, want.Places, want.Pointers}} {
			data, err := json.Marshal(of)
			if err != nil {
				t.Fatalf("%v", err)
			}
			var got lists
			if err := json.Unmarshal(data, &got); err != nil {
				t.Fatalf("%s: %v", data, err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("%s:\n%s", data, diff)
			}
		}
	})
}

func FuzzLists(f *testing.F) {
	for _, s := range []string{
		`{"Ranges":"1 2-3","Places":"4 0.1","Pointers":{"Did":[{"Kind":4}],"At":"4:90/0"}}`,
		`{"Ranges":null,"Places":"","Pointers":{"At":"1:1"}}`, `{"Ranges":"1 "}`, `{"Places":"\u0031"}`, `{"Ranges":[{"From":1}]}`,
		`{"Pointers":{"Did":[{}],"At":"4/0"}}`, `{"Places":"99999999999999999999999"}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var once, twice lists
		if json.Unmarshal(data, &once) != nil {
			return
		}
		again, err := json.Marshal(once)
		if err == nil {
			err = json.Unmarshal(again, &twice)
		}
		if diff := cmp.Diff(once, twice); err != nil || diff != "" {
			t.Fatalf("%s became %s: %v\n%s", data, again, err, diff)
		}
	})
}

func TestListsThatAreNone(t *testing.T) {
	for _, s := range []string{
		`{"Ranges":"1 "}`, `{"Ranges":"1,2"}`, `{"Ranges":"1-"}`, `{"Ranges":7}`, `{"Places":"4."}`, `{"Places":"four"}`, `{"Places":" 4"}`,
		`{"Pointers":{"At":"1:1"}}`, `{"Pointers":{"Did":[{}],"At":"4/0"}}`, `{"Pointers":{}}`, `{"Pointers":{"Did":[{}],"At":"4:1/1"}}`,
	} {
		var got lists
		if err := json.Unmarshal([]byte(s), &got); err == nil {
			t.Errorf("%s is %+v", s, got)
		}
	}
}
