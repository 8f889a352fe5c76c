package log_test

import (
	"encoding/hex"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/logtest"
)

func TestDigestIsOfTheContent(t *testing.T) {
	for _, e := range logtest.Kinds() {
		want := eventlog.Digest(e)
		e.ID, e.Seq, e.Turn, e.Time = "other", 99, 7, time.Unix(1, 0)
		e.Tokens = eventlog.TokenCounts{Tokenizer: "other"}
		e.Labels = maps.Clone(e.Labels)
		if eventlog.Digest(e) != want {
			t.Errorf("the envelope changes the digest of %q", e.ID)
		}
	}
}

// stableDigests are the first bytes of the digests of logtest.Kinds. Digests are
// stored: they must never change for the same content.
var stableDigests = map[string]string{
	"said":             "bbd204d771d9e7ed",
	"calls":            "5958ddba0e7f2786",
	"results":          "b298f337f9b7e400",
	"reminder":         "37c62cf6217e7a99",
	"short reminder":   "413de40b212d9547",
	"compaction":       "24d80826d5cf2d18",
	"empty compaction": "ba518eea3a3fbca2",
	"decided":          "7c7a19f82b1690bc",
	"late results":     "2a7a89cbf05de1c0",
	"masked":           "b6929c9ee1bd8182",
	"undone":           "020c42b362241c37",
	"custom":           "afc6c9a91f19d172",
	"empty custom":     "6bc431a5d864d20e",
}

func TestDigestIsStable(t *testing.T) {
	for _, e := range logtest.Kinds() {
		sum := eventlog.Digest(e)
		if got := hex.EncodeToString(sum[:8]); got != stableDigests[e.ID] {
			t.Errorf("the digest of %q is %s…, it was %s…", e.ID, got, stableDigests[e.ID])
		}
	}
}

// Every field of every kind of content takes part.
func TestDigestKnowsEveryField(t *testing.T) {
	for _, e := range logtest.Kinds() {
		seen := map[[32]byte]string{eventlog.Digest(e): "the event as it is"}
		note := func(what string, changed eventlog.Event) {
			sum := eventlog.Digest(changed)
			if other := seen[sum]; other != "" {
				t.Errorf("%s: %s has the digest of %s", e.ID, what, other)
			}
			seen[sum] = what
		}
		labelled := e
		labelled.Labels = map[string]string{"new": "label"}
		note("another label", labelled)
		body := reflect.ValueOf(e.Body).Elem()
		for i := range body.NumField() {
			changed := reflect.New(body.Type()).Elem()
			changed.Set(body)
			change(changed.Field(i))
			c := e
			c.Body = changed.Addr().Interface().(eventlog.Body)
			note(body.Type().Field(i).Name, c)
		}
		m, ok := e.Body.(*eventlog.Message)
		if !ok {
			continue
		}
		for i, b := range m.Blocks {
			fields := reflect.ValueOf(b)
			for j := range fields.NumField() {
				changed := reflect.New(fields.Type()).Elem()
				changed.Set(fields)
				change(changed.Field(j))
				c, copied := e, *m
				copied.Blocks = slices.Clone(m.Blocks)
				copied.Blocks[i] = changed.Interface().(eventlog.Block)
				c.Body = &copied
				note(fields.Type().Name()+"."+fields.Type().Field(j).Name+" of block "+string(rune('0'+i)), c)
			}
		}
	}
}

// change makes a field different.
func change(f reflect.Value) {
	switch f.Kind() {
	case reflect.String:
		f.SetString(f.String() + "!")
	case reflect.Bool:
		f.SetBool(!f.Bool())
	case reflect.Uint8, reflect.Uint32:
		f.SetUint(f.Uint() ^ 1)
	case reflect.Pointer:
		if !f.IsNil() {
			f.SetZero()
			return
		}
		f.Set(reflect.New(f.Type().Elem()))
	case reflect.Slice:
		grown := reflect.MakeSlice(f.Type(), f.Len()+1, f.Len()+1)
		reflect.Copy(grown, f)
		if f.Type().Elem().Kind() == reflect.Interface {
			grown.Index(f.Len()).Set(reflect.ValueOf(eventlog.Text{Text: "more"}))
		}
		f.Set(grown)
	default:
		panic("a field of a new kind: " + f.Kind().String())
	}
}

// Content that is joined differently is different content.
func TestDigestKeepsPartsApart(t *testing.T) {
	texts := func(parts ...string) eventlog.Event {
		var blocks []eventlog.Block
		for _, p := range parts {
			blocks = append(blocks, eventlog.Text{Text: p})
		}
		return message(eventlog.RoleUser, "", blocks...)
	}
	labels := func(l map[string]string) eventlog.Event {
		e := texts("x")
		e.Labels = l
		return e
	}
	zero := uint32(0)
	all := []eventlog.Event{
		texts("ab", "c"), texts("a", "bc"), texts("abc"), texts("abc", ""), texts("", "abc"),
		labels(map[string]string{"ab": "c"}), labels(map[string]string{"a": "bc"}), labels(map[string]string{"a": "b", "c": ""}),
		message(eventlog.RoleUser, "g", eventlog.Text{Text: "x"}),
		{Body: &eventlog.Message{Role: eventlog.RoleUser, Model: "g", Blocks: []eventlog.Block{eventlog.Text{Text: "x"}}}},
		message(eventlog.RoleTool, "", result("a", eventlog.Text{}), result("b")),
		message(eventlog.RoleTool, "", result("a"), result("b", eventlog.Text{})),
		{Body: &eventlog.Reminder{Body: "b"}}, {Body: &eventlog.Reminder{Body: "b", TTLTurns: &zero}},
		{Body: &eventlog.Reminder{Body: "b", Tags: []string{"x", "y"}}}, {Body: &eventlog.Reminder{Body: "b", Tags: []string{"xy"}}},
		{Body: &eventlog.Custom{Type: "a", JSON: "b"}}, {Body: &eventlog.Custom{Type: "ab"}}, {Body: &eventlog.Custom{JSON: "ab"}},
		{Body: &eventlog.Compaction{}}, {Body: &eventlog.Compaction{Decision: &eventlog.CompactionDecision{}}}, {Body: &eventlog.Compaction{Decision: &eventlog.CompactionDecision{Undoes: 1}}}, {Body: &eventlog.Compaction{Decision: &eventlog.CompactionDecision{LateAfter: 1}}},
		{Body: &eventlog.Compaction{Decision: &eventlog.CompactionDecision{Through: 1}}}, {Body: &eventlog.Compaction{Decision: &eventlog.CompactionDecision{Kept: []eventlog.Seq{1}}}},
		{Body: &eventlog.Compaction{Decision: &eventlog.CompactionDecision{Masked: []eventlog.Place{{Seq: 1}}}}}, {Body: &eventlog.Compaction{Decision: &eventlog.CompactionDecision{Masked: []eventlog.Place{{Block: 1}}}}},
		{Body: &eventlog.Compaction{PreTokens: new(uint64)}}, {Body: &eventlog.Compaction{PostTokens: new(uint64)}},
	}
	for i, a := range all {
		for _, b := range all[:i] {
			if eventlog.Digest(a) == eventlog.Digest(b) {
				t.Errorf("%+v and %+v have the same digest", a, b)
			}
		}
	}
}

func TestEqualDigestsMeanEqualContent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := logtest.GenEvent(eventlog.Head{}, "a").Draw(t, "a"), logtest.GenEvent(eventlog.Head{}, "b").Draw(t, "b")
		content := func(e eventlog.Event) eventlog.Event { return eventlog.Event{Labels: e.Labels, Body: e.Body} }
		same := logtest.Diff(content(a), content(b)) == ""
		if got := eventlog.Digest(a) == eventlog.Digest(b); got != same {
			t.Fatalf("same content: %t, same digest: %t", same, got)
		}
	})
}

func TestSizeCountsContent(t *testing.T) {
	e := message(eventlog.RoleAssistant, "12", eventlog.Text{Text: "345"}, eventlog.Thinking{Text: "6", Signature: "7", RedactedData: "8", EncryptedContent: "9"},
		eventlog.ToolCall{CallID: "0", Name: "12", Arguments: "345"}, eventlog.Media{MIMEType: "6", Data: "78", URI: "9"},
		eventlog.ProviderBlock{Provider: "0", JSON: "1"}, result("2345", eventlog.Text{Text: "67"}))
	e.Labels = map[string]string{"k": "vv"}
	ttl, n := uint32(1), uint64(2)
	for want, e := range map[uint64]eventlog.Event{
		2 + 3 + 2 + 3 + 4 + 6 + 4 + 2 + 6: e,
		2 + 1 + 2 + 3 + 3:                 {ID: "id", Body: &eventlog.Reminder{Body: "b", TTLTurns: &ttl, DedupeKey: "kk", Source: "sss", Tags: []string{"a", "bb"}}},
		2 + 1 + 2 + 3 + 4 + 5:             {ID: "id", Body: &eventlog.Compaction{Summary: "s", Mode: "mm", Strategy: "sss", NativeJSON: "jjjj", KeptEventIDs: []string{"12", "345"}, PreTokens: &n}},
		2 + 1 + 3:                         {ID: "id", Body: &eventlog.Custom{Type: "t", JSON: "jjj"}},
		2 + 1 + 3 + 8*(4+1+2*2): {ID: "id", Body: &eventlog.Compaction{Decision: &eventlog.CompactionDecision{
			SummaryID: "s", SummaryBy: "bbb", Kept: []eventlog.Seq{3}, Masked: []eventlog.Place{{Seq: 4}, {Seq: 5}},
		}}},
	} {
		if got := eventlog.Size(e); got != want {
			t.Errorf("the size of %+v is %d, want %d", e.Body, got, want)
		}
	}
}
