package disklog

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/eventcodec"
	"github.com/contextd/contextd/internal/log/logtest"
	storagev1 "github.com/contextd/contextd/proto/contextd/storage/v1"
)

// storedEvent is what putEvent stores of an event, after a log of which only the
// turns are known.
func storedEvent(key []byte, e eventlog.Event) []byte {
	next := state{head: eventlog.Head{Seq: e.Seq, Turns: e.Turn}}
	event, head := eventcodec.Append(nil, e), appendHead(nil, &next, eventlog.HeadChange{}, true)
	record := make([]byte, recordSize(event, head))
	putRecord(key, record, event, head, [32]byte{})
	return record
}

func TestEventsSurviveEncoding(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		for _, e := range logtest.GenLog(1, 8).Draw(rt, "log") {
			key := eventKey(segmentID(rapid.Uint64Min(1).Draw(rt, "segment")), e.Seq)
			value := storedEvent(key, e)
			got, err := decodeEvent(key, value)
			if err != nil {
				rt.Fatal(err)
			}
			if diff := logtest.Diff(e, got); diff != "" {
				rt.Fatalf("(-want +got):\n%s", diff)
			}
			var stored storagev1.Event
			if err := decode(key, keyEvent, value, &stored); err != nil {
				rt.Fatal(err)
			}
			simple := eventMessage(e)
			simple.Head = &storagev1.Head{Turns: e.Turn, Complete: true, UpdateSeconds: time.Time{}.Unix(), Chain: stored.GetHead().GetChain()}
			if !proto.Equal(&stored, simple) || proto.Size(simple) != len(value)-frameSize {
				rt.Fatalf("%d bytes say %v, %d bytes would say %v", len(value)-frameSize, &stored, proto.Size(simple), simple)
			}
			if !bytes.Equal(value, storedEvent(key, got)) {
				rt.Fatal("the same event is encoded in two ways")
			}
		}
	})
}

// The chain covers all of an event's encoding but its own last bytes.
func TestChainIsTheEndOfTheRecord(t *testing.T) {
	key := eventKey(1, 1)
	record := storedEvent(key, logtest.Say("a"))
	m, err := headIn(key, record)
	if err != nil {
		t.Fatal(err)
	}
	body := record[frameSize:]
	want := sha256.Sum256(append(make([]byte, 32), body[:len(body)-32]...))
	if !bytes.Equal(m.GetChain(), want[:]) || !bytes.HasSuffix(record, want[:]) {
		t.Errorf("the chain is %x, want %x at the end of %x", m.GetChain(), want, record)
	}
}

// Heads written one after the other are read back at every seq, however many
// calls are open.
func TestHeadsSurviveEncoding(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		at := state{head: eventlog.Head{Seq: eventlog.Seq(rapid.Uint64Range(0, 99).Draw(rt, "base"))}}
		var told state
		for i := range rapid.IntRange(1, 80).Draw(rt, "events") {
			change := eventlog.HeadChange{Turns: uint32(i)}
			for _, c := range at.head.OpenCalls {
				if rapid.IntRange(0, 9).Draw(rt, "close") == 0 {
					change.Closed = append(change.Closed, c.CallID)
				}
			}
			for j := range rapid.IntRange(0, 3).Draw(rt, "open") {
				id := string(rune('a'+i%26)) + string(rune('a'+i/26)) + string(rune('0'+j))
				if j == 0 && len(change.Closed) > 0 && rapid.Bool().Draw(rt, "reuse") {
					id = change.Closed[0] // an interrupted call's id is used again
				}
				change.Opened = append(change.Opened, eventlog.OpenCall{CallID: id, Seq: at.head.Seq + 1, GroupID: rapid.SampledFrom([]string{"", "g"}).Draw(rt, "group")})
			}
			before := at.chain
			at.head.Apply(at.head.Seq+1, change)
			at.bytes += rapid.Uint64Range(0, 1<<40).Draw(rt, "bytes")
			at.update = logtest.GenTime().Draw(rt, "time")
			key := eventKey(1, at.head.Seq)
			event := eventcodec.Append(nil, logtest.Say(strings.Repeat("x", rapid.SampledFrom([]int{1, completeEvery / 4}).Draw(rt, "size"))))
			complete := i == 0 || at.completeAfter(len(event))
			head := appendHead(nil, &at, change, complete)
			record := make([]byte, recordSize(event, head))
			if at.since += len(record); complete {
				at.since = 0
			}
			at.chain = putRecord(key, record, event, head, before)
			m, err := headIn(key, record)
			if err != nil {
				rt.Fatal(err)
			}
			told.applyHead(at.head.Seq, m, len(record))
			if !told.update.Equal(at.update) {
				rt.Fatalf("updated %v, want %v", told.update, at.update)
			}
			told.update = at.update
			if diff := cmp.Diff(at, told, cmp.AllowUnexported(state{}), cmpopts.EquateEmpty()); diff != "" {
				rt.Fatalf("(-want +got):\n%s", diff)
			}
			if at.since > completeEvery+len(record) {
				rt.Fatalf("%d bytes follow the last complete head", at.since)
			}
		}
	})
}

// TestHeadsAreSmall stores events while as many calls are open as a log remembers, with
// ids as long as clients may send: the heads take little more than the events.
func TestHeadsAreSmall(t *testing.T) {
	long := strings.Repeat("i", 500)
	for name, tell := range map[string]func(i int) eventlog.HeadChange{
		"calls that nothing answers": func(i int) eventlog.HeadChange {
			c := eventlog.HeadChange{Opened: []eventlog.OpenCall{{CallID: fmt.Sprint(long, i), Seq: eventlog.Seq(i + 1), GroupID: long}}}
			if i >= eventlog.MaxOpenCalls {
				c.Closed = []string{fmt.Sprint(long, i-eventlog.MaxOpenCalls)}
			}
			return c
		},
		"small events after them": func(i int) eventlog.HeadChange {
			if i >= eventlog.MaxOpenCalls {
				return eventlog.HeadChange{}
			}
			return eventlog.HeadChange{Opened: []eventlog.OpenCall{{CallID: fmt.Sprint(long, i), Seq: eventlog.Seq(i + 1), GroupID: long}}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			var at state
			events, heads, changes, largest := 0, 0, 0, 0
			for i := range 20 * eventlog.MaxOpenCalls {
				change := tell(i)
				at.head.Apply(eventlog.Seq(i+1), change)
				event := eventcodec.Append(nil, logtest.Say("x"))
				complete := i == 0 || at.completeAfter(len(event))
				alone := len(appendHead(nil, &at, change, false))
				head := appendHead(nil, &at, change, complete)
				if at.since += recordSize(event, head); complete {
					at.since = 0
				}
				events, heads, changes, largest = events+len(event), heads+len(head), changes+alone, max(largest, len(head))
			}
			if most := 2*(events+changes) + largest; heads > most {
				t.Errorf("the heads take %d bytes; the events take %d and what they change %d", heads, events, changes)
			}
		})
	}
}

func TestSessionsSurviveEncoding(t *testing.T) {
	for _, want := range []*record{
		newRecord(eventlog.Session{ID: "s", CreateTime: time.Unix(1, 2)}, []link{{segment: 3, upTo: unbounded, puts: unbounded}}),
		newRecord(eventlog.Session{
			ID: "a\x00", CreateTime: time.Time{}, Labels: map[string]string{"": "v"}, Settings: []byte{0xff}, ParentID: "p", ForkSeq: 7,
		}, []link{{segment: 1, upTo: 5}, {segment: 2, base: 5, upTo: 7, puts: 9}, {segment: 1 << 63, base: 7, upTo: unbounded, puts: unbounded}}),
	} {
		key := sessionKey(want.info.ID)
		value, err := encodeSession(key, want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := decodeSession(key, value)
		if err != nil {
			t.Fatal(err)
		}
		if diff := logtest.Diff(want.info, got.info); diff != "" || !slices.Equal(got.links, want.links) {
			t.Errorf("got %+v, want %+v\n%s", got, want, diff)
		}
	}
}

func TestFramesAreCheckedInOrder(t *testing.T) {
	key := eventKey(7, 9)
	good := storedEvent(key, logtest.Say("a"))
	cases := map[string]struct {
		damage func(v []byte) []byte
		want   string
	}{
		"short":            {func(v []byte) []byte { return v[:frameSize-1] }, "shorter than a frame"},
		"magic":            {func(v []byte) []byte { v[0]++; return v }, "the magic"},
		"letter":           {func(v []byte) []byte { v[1] = keyIndex; return v }, "the magic"},
		"version":          {func(v []byte) []byte { v[2] = 2; return v }, "version 2, this program knows 1"},
		"version and more": {func(v []byte) []byte { v[2] = 9; return append(v, "unknown"...) }, "version 9"},
		"checksum":         {func(v []byte) []byte { v[3]++; return v }, "checksum"},
		"body":             {func(v []byte) []byte { v[len(v)-1]++; return v }, "checksum"},
		"cut":              {func(v []byte) []byte { return v[:len(v)-1] }, "checksum"},
		"longer":           {func(v []byte) []byte { return append(v, 0) }, "checksum"},
	}
	for name, c := range cases {
		_, err := decodeEvent(key, c.damage(slices.Clone(good)))
		var corrupt *eventlog.CorruptError
		if !errors.As(err, &corrupt) || !strings.Contains(corrupt.Reason, c.want) || corrupt.What != "event 9 of segment 7" {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
	if _, err := decodeEvent(eventKey(7, 8), good); err == nil {
		t.Error("a record passes under another's key")
	}
}

// A record that holds a kind of content which is not known here is
// damaged, not empty.
func TestUnknownContentIsCorrupt(t *testing.T) {
	text := &storagev1.Block{Kind: &storagev1.Block_Text{Text: &storagev1.Text{}}}
	message := func(m *storagev1.Message) *storagev1.Event {
		return &storagev1.Event{Kind: &storagev1.Event_Message{Message: m}}
	}
	for name, m := range map[string]*storagev1.Event{
		"no kind":       {},
		"no block kind": message(&storagev1.Message{Blocks: []*storagev1.Block{text, {}}}),
		"no result kind": message(&storagev1.Message{Blocks: []*storagev1.Block{{Kind: &storagev1.Block_ToolResult{
			ToolResult: &storagev1.ToolResult{Content: []*storagev1.Block{{}}},
		}}}}),
		"role":    message(&storagev1.Message{Role: 99, Blocks: []*storagev1.Block{text}}),
		"hint":    {Kind: &storagev1.Event_Reminder{Reminder: &storagev1.Reminder{RoleHint: -1}}},
		"trigger": {Kind: &storagev1.Event_Compaction{Compaction: &storagev1.Compaction{Trigger: 77}}},
	} {
		key := eventKey(1, 1)
		m.Head = &storagev1.Head{Chain: make([]byte, 32)}
		value, err := encode(key, keyEvent, m)
		if err != nil {
			t.Fatal(err)
		}
		_, err = decodeEvent(key, value)
		if !errors.As(err, new(*eventlog.CorruptError)) || !strings.Contains(err.Error(), "of no known kind") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := encode(eventKey(1, 1), keyEvent, &storagev1.Event{EventId: "\xff"}); err == nil {
		t.Error("a record that cannot be read again was encoded")
	}
	if err := decode(eventKey(1, 1), keyEvent, nil, &storagev1.Event{}); err == nil {
		t.Error("nothing was decoded")
	}
}

func fuzzDecode(f *testing.F, letter byte, key []byte, decodeBody func(value []byte) error, seeds ...proto.Message) {
	for _, m := range seeds {
		body, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body)
	}
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, body []byte) {
		// With a good frame, so that the fuzzer gets past the checksum.
		value := append(make([]byte, frameSize), body...)
		putFrame(key, letter, value)
		err := decodeBody(value)
		if err != nil && !errors.As(err, new(*eventlog.CorruptError)) {
			t.Fatalf("got %T %v", err, err)
		}
		if err := decodeBody(body); err != nil && !errors.As(err, new(*eventlog.CorruptError)) {
			t.Fatalf("without a frame: got %T %v", err, err)
		}
	})
}

func FuzzDecodeEvent(f *testing.F) {
	var seeds []proto.Message
	for _, e := range logtest.Kinds() {
		m := eventMessage(e)
		m.Head = &storagev1.Head{Chain: make([]byte, 32), Opened: []*storagev1.OpenCall{{CallId: "c"}}}
		seeds = append(seeds, m)
	}
	key := eventKey(1, 1)
	fuzzDecode(f, keyEvent, key, func(value []byte) error {
		e, err := decodeEvent(key, value)
		if err == nil {
			// What is decoded can be stored again, as the same event.
			if second, err := decodeEvent(key, storedEvent(key, e)); err != nil || logtest.Diff(e, second) != "" {
				return fmt.Errorf("stored again it is %+v, %w", second, err)
			}
		}
		return err
	}, seeds...)
}

func FuzzDecodeHead(f *testing.F) {
	key := eventKey(1, 5)
	fuzzDecode(f, keyEvent, key, func(value []byte) error {
		m, err := headIn(key, value)
		if err == nil {
			at := state{head: eventlog.Head{Seq: 4, OpenCalls: []eventlog.OpenCall{{CallID: "c"}}}}
			at.applyHead(5, m, len(value))
		}
		return err
	}, &storagev1.Event{EventId: "e", Head: &storagev1.Head{
		Chain: make([]byte, 32), Opened: []*storagev1.OpenCall{{CallId: "c", Seq: 2}}, Closed: []string{"c"},
	}})
}

func FuzzDecodeSession(f *testing.F) {
	key := sessionKey("s")
	up := uint64(3)
	fuzzDecode(f, keySession, key, func(value []byte) error {
		_, err := decodeSession(key, value)
		return err
	}, &storagev1.Session{Labels: map[string]string{"k": "v"}, Links: []*storagev1.Link{{Segment: 1, UpTo: &up, Puts: &up}, {Segment: 2}}})
}

func FuzzParseKey(f *testing.F) {
	f.Add(artifactKey(1, "k\x00", 3, "id\x00\xff", 4))
	f.Add(eventKey(1, 2))
	f.Add([]byte("g"))
	f.Fuzz(func(t *testing.T, key []byte) {
		_ = describeKey(key)
		_ = keySeq(key)
		_ = deletionSegment(key)
		if n, ok := parseArtifactKey(key); ok && !bytes.Equal(artifactKey(keySegmentID(key), n.kind, n.seq, n.id, n.put), key) {
			t.Fatalf("key %x reads as %+v, which is another key", key, n)
		}
	})
}

func FuzzParseFormat(f *testing.F) {
	f.Add(formatText())
	f.Add("contextd-log\nversion 9\n")
	f.Fuzz(func(t *testing.T, text string) {
		err := parseFormat("dir", text)
		if (err == nil) != (text == formatText()) {
			t.Fatalf("%q: %v", text, err)
		}
		if err != nil && !errors.As(err, new(*FormatError)) {
			t.Fatalf("got %T", err)
		}
	})
}
