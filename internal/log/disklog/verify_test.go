package disklog

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"google.golang.org/protobuf/proto"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/logtest"
	storagev1 "github.com/contextd/contextd/proto/contextd/storage/v1"
)

// forger changes a store's records behind its back, well framed.
type forger struct {
	t *testing.T
	s *Store
}

func (f forger) ok(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f forger) get(key []byte) []byte {
	f.t.Helper()
	value, closer, err := f.s.db.Get(key)
	f.ok(err)
	defer closer.Close()
	return append([]byte(nil), value...)
}

func (f forger) set(key, value []byte) {
	f.t.Helper()
	f.ok(f.s.db.Set(key, value, pebble.NoSync))
}

func (f forger) delete(keys ...[]byte) {
	f.t.Helper()
	for _, key := range keys {
		f.ok(f.s.db.Delete(key, pebble.NoSync))
	}
}

// record takes the record of an event apart, lets change alter it, and stores it
// with a good checksum. The chain stays as it was.
func (f forger) record(segment segmentID, seq eventlog.Seq, change func(m *storagev1.Event)) {
	f.t.Helper()
	key := eventKey(segment, seq)
	var m storagev1.Event
	f.ok(decode(key, keyEvent, f.get(key), &m))
	change(&m)
	e := storagev1.Event{}
	proto.Merge(&e, &m)
	e.Head = nil
	body, err := proto.Marshal(&e)
	f.ok(err)
	chain := m.GetHead().GetChain()
	m.Head.Chain = nil
	head, err := proto.Marshal(m.Head)
	f.ok(err)
	value := make([]byte, recordSize(body, head))
	putRecord(key, value, body, head, [32]byte{})
	copy(value[len(value)-len(chain):], chain)
	putFrame(key, keyEvent, value)
	f.set(key, value)
}

// rechain makes an event's chain value fit again.
func (f forger) rechain(segment segmentID, seq eventlog.Seq, before [32]byte) {
	f.t.Helper()
	key := eventKey(segment, seq)
	value := f.get(key)
	chain := chainOver(before, value[frameSize:len(value)-32])
	copy(value[len(value)-32:], chain[:])
	putFrame(key, keyEvent, value)
	f.set(key, value)
}

// move stores the event at one place under another, framed for it.
func (f forger) move(segment segmentID, from, to eventlog.Seq) {
	f.t.Helper()
	value := f.get(eventKey(segment, from))
	putFrame(eventKey(segment, to), keyEvent, value)
	f.set(eventKey(segment, to), value)
}

func openMem(t *testing.T, fs vfs.FS) *Store {
	t.Helper()
	s, err := Open("log", Options{FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func add(t *testing.T, s eventlog.Store, id string, events ...eventlog.Event) {
	t.Helper()
	c, err := s.Append(t.Context(), id, eventlog.Batch{Events: events})
	if err == nil {
		_, err = c.Wait(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestVerifyFindsWhatWasChanged(t *testing.T) {
	// Session s has segment 1 with events 1 to 8; t forks it at 4 and has segment
	// 2 with events 5 and 6.
	const s, fork = segmentID(1), segmentID(2)
	text := func(m *storagev1.Event, text string) {
		m.GetMessage().Blocks[0].GetText().Text = text
	}
	later := func(m *storagev1.Event) { m.TimeNanos++ }
	cases := []struct {
		name  string
		forge func(f forger)
		// want is part of what Verify says of s, and of t; "" if it finds nothing.
		want, wantFork string
	}{
		{name: "nothing", forge: func(forger) {}},
		{name: "nothing, taken apart", forge: func(f forger) { f.record(s, 2, func(*storagev1.Event) {}) }},
		{
			name: "an event is edited", forge: func(f forger) { f.record(s, 2, func(m *storagev1.Event) { text(m, "E2") }) },
			want: "event 2 of segment 1 is corrupt: the hash chain", wantFork: "event 2 of segment 1 is corrupt: the hash chain",
		},
		{
			name: "an event's time is edited", forge: func(f forger) { f.record(s, 2, later) },
			want: "hash chain", wantFork: "hash chain",
		},
		{
			name: "an event is edited after the fork", forge: func(f forger) {
				f.record(s, 6, func(m *storagev1.Event) { m.Tokens = &storagev1.TokenCounts{Tokenizer: "other"} })
			},
			want: "hash chain",
		},
		{
			name: "an event is edited and its own chain made to fit", forge: func(f forger) {
				first := f.get(eventKey(s, 1))
				f.record(s, 2, later)
				f.rechain(s, 2, [32]byte(first[len(first)-32:]))
			},
			want: "event 3 of segment 1 is corrupt: the hash chain", wantFork: "event 3 of segment 1 is corrupt: the hash chain",
		},
		{
			name: "the chain is not at the end", forge: func(f forger) {
				key := eventKey(s, 2)
				value := append(f.get(key), 0x50, 1) // an unknown field
				putFrame(key, keyEvent, value)
				f.set(key, value)
			},
			want: "hash chain", wantFork: "hash chain",
		},
		{
			name: "a record without a head", forge: func(f forger) {
				key := eventKey(s, 2)
				value, err := encode(key, keyEvent, eventMessage(logtest.Say("e2")))
				f.ok(err)
				f.set(key, value)
			},
			want: "no head with a chain", wantFork: "no head with a chain",
		},
		{
			name: "two events change places", forge: func(f forger) {
				second, third := f.get(eventKey(s, 1)), f.get(eventKey(s, 2))
				putFrame(eventKey(s, 2), keyEvent, second)
				putFrame(eventKey(s, 1), keyEvent, third)
				f.set(eventKey(s, 2), second)
				f.set(eventKey(s, 1), third)
			},
			want: "event 1 of segment 1 is corrupt: the hash chain", wantFork: "event 1 of segment 1 is corrupt: the hash chain",
		},
		{
			name: "an event is copied without a new checksum", forge: func(f forger) { f.set(eventKey(s, 2), f.get(eventKey(s, 1))) },
			want: "checksum", wantFork: "checksum",
		},
		{
			name: "an event is missing", forge: func(f forger) { f.delete(eventKey(s, 3)) },
			want: "event 3 of segment 1 is corrupt: it is missing", wantFork: "event 3 of segment 1 is corrupt: it is missing",
		},
		{
			name: "the first event is missing", forge: func(f forger) { f.delete(eventKey(s, 1)) },
			want: "event 1 of segment 1 is corrupt: it is missing", wantFork: "event 1 of segment 1 is corrupt: it is missing",
		},
		{
			name: "the last event is missing", forge: func(f forger) { f.delete(eventKey(s, 8)) },
			want: "event 8 of segment 1 is corrupt: it is missing",
		},
		{
			name: "a gap is closed", forge: func(f forger) {
				for seq := eventlog.Seq(3); seq < 8; seq++ {
					f.move(s, seq+1, seq)
				}
			},
			want: "event 3 of segment 1 is corrupt: the hash chain", wantFork: "event 3 of segment 1 is corrupt: the hash chain",
		},
		{
			name: "a head says other turns", forge: func(f forger) {
				seventh := f.get(eventKey(s, 6))
				f.record(s, 7, func(m *storagev1.Event) { m.Head.Turns++ })
				f.rechain(s, 7, [32]byte(seventh[len(seventh)-32:]))
			},
			want: "event 7 of segment 1 is corrupt: its head does not follow",
		},
		{
			name: "a head leaves an open call out", forge: func(f forger) {
				third := f.get(eventKey(s, 3))
				f.record(s, 4, func(m *storagev1.Event) { m.Head.Opened = m.Head.Opened[1:] })
				f.rechain(s, 4, [32]byte(third[len(third)-32:]))
			},
			want: "event 4 of segment 1 is corrupt: its head does not follow", wantFork: "event 4 of segment 1 is corrupt: its head does not follow",
		},
		{
			name: "the first head is not complete", forge: func(f forger) {
				f.record(s, 1, func(m *storagev1.Event) { m.Head.Complete = false })
				f.rechain(s, 1, [32]byte{})
			},
			want: "its head is not complete", wantFork: "its head is not complete",
		},
		{
			name: "an index is missing", forge: func(f forger) { f.delete(indexKey(s, eventIDHash("e5"))) },
			want: "index of event 5 of segment 1",
		},
		{
			name: "an index points elsewhere", forge: func(f forger) {
				key := indexKey(s, eventIDHash("e6"))
				digest := eventlog.Digest(logtest.Say("e6"))
				value, err := encode(key, keyIndex, &storagev1.Index{Seq: 7, Digest: digest[:]})
				f.ok(err)
				f.set(key, value)
			},
			want: "index of event 6 of segment 1",
		},
		{
			name: "the fork's own event is edited", forge: func(f forger) { f.record(fork, 5, later) },
			wantFork: "hash chain",
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			fs := vfs.NewMem()
			st := openMem(t, fs)
			add(t, st, "s", logtest.Say("e1"), logtest.Say("e2"), logtest.Say("e3"))
			add(t, st, "s", logtest.Call("e4", "c1", "c2"), logtest.Answer("e5", "c1"))
			for _, id := range []string{"e6", "e7", "e8"} {
				add(t, st, "s", logtest.Say(id))
			}
			if _, err := st.Fork(t.Context(), eventlog.ForkRequest{ParentID: "s", At: 4, NewID: "t"}); err != nil {
				t.Fatal(err)
			}
			add(t, st, "t", logtest.Say("f1"), logtest.Answer("f2", "c2"))
			c.forge(forger{t, st})
			for id, want := range map[string]string{"s": c.want, "t": c.wantFork} {
				err := st.Verify(t.Context(), id)
				var corrupt *eventlog.CorruptError
				switch {
				case want == "" && err != nil:
					t.Errorf("%s: %v", id, err)
				case want != "" && (!errors.As(err, &corrupt) || !strings.Contains(err.Error(), want)):
					t.Errorf("%s: got %v, want it to say %q", id, err, want)
				}
			}
			if err := st.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// What is damaged is never passed on as an event.
func TestReadingStopsAtDamage(t *testing.T) {
	st := openMem(t, vfs.NewMem())
	defer st.Close()
	for i := range 30 {
		add(t, st, "s", logtest.Say(fmt.Sprint(i)))
	}
	f := forger{t, st}
	whole := f.get(eventKey(1, 20))
	for bit := range len(whole) * 8 {
		damaged := append([]byte(nil), whole...)
		damaged[bit/8] ^= 1 << (bit % 8)
		f.set(eventKey(1, 20), damaged)
		events, err := logtest.Collect(st.Read(t.Context(), "s", 1, 0))
		var corrupt *eventlog.CorruptError
		if len(events) != 19 || !errors.As(err, &corrupt) {
			t.Fatalf("bit %d: read %d events, %v", bit, len(events), err)
		}
	}
	f.set(eventKey(1, 20), whole[:3])
	if _, err := logtest.Collect(st.Read(t.Context(), "s", 20, 20)); err == nil {
		t.Error("a cut record was read")
	}
	f.delete(eventKey(1, 20))
	events, err := logtest.Collect(st.Read(t.Context(), "s", 18, 22))
	if len(events) != 2 || err == nil || !strings.Contains(err.Error(), "event 20 of segment 1 is corrupt: it is missing") {
		t.Errorf("read %d events, %v", len(events), err)
	}
	if err := st.Healthy(); err != nil {
		t.Errorf("one damaged record made the store %v", err)
	}
}

func TestDamagedSessionsAreReported(t *testing.T) {
	fs := vfs.NewMem()
	st := openMem(t, fs)
	add(t, st, "s", logtest.Say("a"))
	add(t, st, "s", logtest.Call("b", "c"))
	add(t, st, "ok", logtest.Say("a"))
	f := forger{t, st}
	damage := map[string]func(){
		"session \"s\"":        func() { f.set(sessionKey("s"), []byte("C")) },
		"event 2 of segment 1": func() { f.set(eventKey(1, 2), f.get(eventKey(1, 1))) },
		"no complete head": func() {
			f.record(1, 2, func(m *storagev1.Event) { m.Head.Complete = false })
			f.delete(eventKey(1, 1))
		},
		"no head with a chain": func() {
			value, err := encode(eventKey(1, 2), keyEvent, eventMessage(logtest.Say("b")))
			f.ok(err)
			f.set(eventKey(1, 2), value)
		},
		"its last link": func() {
			r, err := decodeSession(sessionKey("s"), f.get(sessionKey("s")))
			f.ok(err)
			r.links[0].upTo, r.links[0].puts = 3, 0
			value, err := encodeSession(sessionKey("s"), r)
			f.ok(err)
			f.set(sessionKey("s"), value)
		},
	}
	keys := [][]byte{sessionKey("s"), eventKey(1, 1), eventKey(1, 2)}
	for want, do := range damage {
		whole := [][]byte{f.get(keys[0]), f.get(keys[1]), f.get(keys[2])}
		do()
		// A new process has nothing in memory.
		f.ok(st.Close())
		st = openMem(t, fs)
		f.s = st
		_, err := st.Session(context.Background(), "s")
		var corrupt *eventlog.CorruptError
		if !errors.As(err, &corrupt) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want it to say %q", err, want)
		}
		if _, err := st.Append(context.Background(), "s", eventlog.Batch{Events: []eventlog.Event{logtest.Say("x")}}); !errors.As(err, &corrupt) {
			t.Errorf("append to a damaged session: %v", err)
		}
		if _, err := st.Session(context.Background(), "ok"); err != nil {
			t.Errorf("the other session: %v", err)
		}
		for i, key := range keys {
			f.set(key, whole[i])
		}
	}
	f.ok(st.Verify(context.Background(), "s"))
	f.ok(st.Close())
}
