package log_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/logtest"
)

// heldLog is a fake of a store's lookup over a list of admitted events.
type heldLog struct {
	head  eventlog.Head
	known map[string]eventlog.Known
}

func (l *heldLog) admit(events []eventlog.Event, expect *eventlog.Seq) (eventlog.Admission, error) {
	p, err := eventlog.Prepare(eventlog.Batch{Events: events, ExpectedHead: expect})
	if err != nil {
		return eventlog.Admission{}, err
	}
	a, err := p.Admit(l.head, func(i int) (eventlog.Known, bool, error) {
		known, found := l.known[events[i].ID]
		return known, found, nil
	})
	if err != nil {
		return a, err
	}
	applied := l.head.Clone()
	for _, f := range a.Fresh {
		applied.Apply(f.Event.Seq, f.Change)
		l.known[f.Event.ID] = eventlog.Known{Seq: f.Event.Seq, Digest: f.Digest, Tokens: f.Event.Tokens}
	}
	if diff := cmp.Diff(a.Head, applied, cmpopts.EquateEmpty()); diff != "" {
		return a, fmt.Errorf("the changes lead elsewhere than the batch (-batch +changes):\n%s", diff)
	}
	l.head = a.Head
	return a, nil
}

func newHeldLog(ids ...string) *heldLog {
	l := &heldLog{known: map[string]eventlog.Known{}}
	for _, id := range ids {
		if _, err := l.admit([]eventlog.Event{logtest.Say(id)}, nil); err != nil {
			panic(err)
		}
	}
	return l
}

func TestBatches(t *testing.T) {
	say := logtest.Say
	other := func(id string) eventlog.Event {
		return logtest.Message(id, eventlog.RoleUser, eventlog.Text{Text: "other"})
	}
	seq := func(s eventlog.Seq) *eventlog.Seq { return &s }
	cases := []struct {
		name     string
		events   []eventlog.Event
		expect   *eventlog.Seq
		receipts []eventlog.Receipt
		fresh    int
		newest   eventlog.Seq
		err      error
	}{
		{name: "new events", events: []eventlog.Event{say("c"), say("d")}, receipts: []eventlog.Receipt{{Seq: 3, EventID: "c"}, {Seq: 4, EventID: "d"}}, fresh: 2, newest: 4},
		{name: "known events", events: []eventlog.Event{say("b"), say("a")}, receipts: []eventlog.Receipt{{Seq: 2, EventID: "b", Duplicate: true}, {Seq: 1, EventID: "a", Duplicate: true}}, newest: 2},
		{name: "both", events: []eventlog.Event{say("a"), say("c")}, receipts: []eventlog.Receipt{{Seq: 1, EventID: "a", Duplicate: true}, {Seq: 3, EventID: "c"}}, fresh: 1, newest: 3},
		{name: "twice in the batch", events: []eventlog.Event{say("c"), say("c")}, receipts: []eventlog.Receipt{{Seq: 3, EventID: "c"}, {Seq: 3, EventID: "c", Duplicate: true}}, fresh: 1, newest: 3},
		{name: "the expected head", events: []eventlog.Event{say("c")}, expect: seq(2), receipts: []eventlog.Receipt{{Seq: 3, EventID: "c"}}, fresh: 1, newest: 3},
		{name: "another head", events: []eventlog.Event{say("a"), say("c")}, expect: seq(1), err: &eventlog.HeadMismatchError{Expected: 1, Actual: 2}},
		{name: "another head, but nothing new", events: []eventlog.Event{say("a")}, expect: seq(7), receipts: []eventlog.Receipt{{Seq: 1, EventID: "a", Duplicate: true}}, newest: 1},
		{name: "a conflict with the log", events: []eventlog.Event{say("c"), other("a")}, expect: seq(9), err: &eventlog.EventConflictError{EventID: "a", Index: 1, Seq: 1}},
		{name: "a conflict in the batch", events: []eventlog.Event{say("c"), other("c")}, err: &eventlog.EventConflictError{EventID: "c", Index: 1}},
		{name: "no events", err: &eventlog.InvalidError{Field: "events", Reason: "must not be empty"}},
		{name: "no id", events: []eventlog.Event{say("c"), say("")}, err: &eventlog.InvalidError{Field: "events[1].event_id", Reason: "must not be empty"}},
		{
			name: "a bad event behind a known one", events: []eventlog.Event{say("a"), logtest.Answer("c", "none")},
			err: &eventlog.InvalidError{Field: "events[1].message.blocks[0].tool_result.call_id", Reason: `"none" answers no open tool call before it`},
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			a, err := newHeldLog("a", "b").admit(c.events, c.expect)
			if fmt.Sprintf("%T %v", err, err) != fmt.Sprintf("%T %v", c.err, c.err) {
				t.Fatalf("got %v, want %v", err, c.err)
			}
			if diff := logtest.Diff(c.receipts, a.Receipts); diff != "" {
				t.Error(diff)
			}
			if len(a.Fresh) != c.fresh || a.Newest != c.newest {
				t.Errorf("%d events are new and the newest is %d, want %d and %d", len(a.Fresh), a.Newest, c.fresh, c.newest)
			}
		})
	}
}

func TestPrepareBringsTimesToUTC(t *testing.T) {
	e := logtest.Say("a")
	e.Time = time.Now().In(time.FixedZone("away", 3600)) // with a monotonic part
	p, err := eventlog.Prepare(eventlog.Batch{Events: []eventlog.Event{e}})
	if err != nil {
		t.Fatal(err)
	}
	if got := p.Events()[0].Time; got != e.Time.UTC().Round(0) || !got.Equal(e.Time) {
		t.Errorf("got %v, want %v", got, e.Time)
	}
}

// Repeating any part of the past, in any mixture with new events, changes nothing
// of the past.
func TestRepetitionIsHarmless(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newHeldLog()
		var past []eventlog.Event
		for range rapid.IntRange(1, 8).Draw(t, "batches") {
			var batch []eventlog.Event
			at := l.head
			for range rapid.IntRange(0, 3).Draw(t, "new") {
				e := logtest.GenEvent(at, fmt.Sprintf("e%d-%d", len(past), len(batch))).Draw(t, "event")
				next, _, err := at.Admit([]eventlog.Event{e})
				if err != nil {
					t.Fatal(err)
				}
				at, batch = next, append(batch, e)
			}
			fresh := len(batch)
			repeated := past
			if len(past) > 0 {
				repeated = rapid.SliceOfN(rapid.SampledFrom(past), 0, 4).Draw(t, "repeated")
			}
			batch = append(batch, repeated...)
			if len(batch) == 0 {
				continue
			}
			before := l.head
			a, err := l.admit(batch, nil)
			if err != nil {
				t.Fatal(err)
			}
			if len(a.Fresh) != fresh || l.head.Seq != before.Seq+eventlog.Seq(fresh) {
				t.Fatalf("%d events were new, %d were taken for new", fresh, len(a.Fresh))
			}
			for i, r := range a.Receipts {
				if r.Duplicate != (i >= fresh) || r.EventID != batch[i].ID || r.Seq != l.known[r.EventID].Seq {
					t.Fatalf("receipt %d is %+v", i, r)
				}
			}
			past = append(past, batch[:fresh]...)
		}
	})
}

func TestWhatIsMadeIsChecked(t *testing.T) {
	for field, err := range map[string]error{
		"session_id":     eventlog.Session{}.Validate(),
		`labels["k"]`:    eventlog.Session{ID: "s", Labels: map[string]string{"k": "\xff"}}.Validate(),
		"id":             eventlog.ValidateSessionID("id", "\xff"),
		"new_session_id": eventlog.ForkRequest{}.Validate(0),
		"at_seq":         eventlog.ForkRequest{NewID: "t", At: 3}.Validate(2),
		"page_size":      eventlog.SessionQuery{Limit: -1}.Validate(),
		"artifact.kind":  eventlog.ValidateArtifacts([]eventlog.Artifact{{ID: "i"}}),
	} {
		var invalid *eventlog.InvalidError
		if !errors.As(err, &invalid) || invalid.Field != field {
			t.Errorf("%s: got %v", field, err)
		}
	}
	if err := errors.Join(
		eventlog.Session{ID: "s", Labels: map[string]string{"": ""}}.Validate(),
		eventlog.ForkRequest{NewID: "t", At: 2}.Validate(2),
		eventlog.SessionQuery{Limit: 1}.Validate(),
		eventlog.ValidateArtifacts([]eventlog.Artifact{{Kind: "k"}}),
	); err != nil {
		t.Error(err)
	}
}

func TestSessionsMatchLabels(t *testing.T) {
	s := eventlog.Session{Labels: map[string]string{"a": "1", "b": ""}}
	for _, c := range []struct {
		labels map[string]string
		want   bool
	}{
		{nil, true},
		{map[string]string{"a": "1"}, true},
		{map[string]string{"a": "1", "b": ""}, true},
		{map[string]string{"a": "2"}, false},
		{map[string]string{"c": ""}, false},
	} {
		if got := s.Matches(c.labels); got != c.want {
			t.Errorf("%v match: %t", c.labels, got)
		}
	}
}
