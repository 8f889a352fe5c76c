package records_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/logtest"
	"github.com/contextd/contextd/internal/projection"
	"github.com/contextd/contextd/internal/records"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/reduce/reducetest"
)

var gauge = reducetest.Gauge

// conversation appends bodies as events 1, 2, 3 and so on.
func conversation(all ...eventlog.Body) *reduce.Conversation {
	c := reduce.NewConversation(gauge)
	turn := uint32(0)
	for i, body := range all {
		if m, ok := body.(*eventlog.Message); ok && m.Role == eventlog.RoleAssistant {
			turn++
		}
		c.Append(eventlog.Event{Seq: eventlog.Seq(i + 1), Turn: turn, ID: fmt.Sprint(i), Body: body})
	}
	return c
}

var body = strings.Repeat("ä", 200) // 400 bytes, 100 tokens, 200 characters

// aSession has a user message (1), a turn with two results in one event (2, 3), a
// custom event (4), a user message (5), a turn with reasoning (6) and a turn with
// an interrupted call (7).
func aSession() *reduce.Conversation {
	return conversation(
		reducetest.Say(eventlog.RoleUser, reducetest.Text(body)),
		reducetest.Say(eventlog.RoleAssistant, reducetest.Text("two"), reducetest.Call("a"), reducetest.Call("b")),
		reducetest.Say(eventlog.RoleTool, reducetest.Result("a", body), reducetest.Result("b", body)),
		&eventlog.Custom{Type: "note"},
		reducetest.Say(eventlog.RoleUser, reducetest.Text(body)),
		reducetest.Say(eventlog.RoleAssistant, eventlog.Thinking{Text: body}, reducetest.Text("done")),
		reducetest.Say(eventlog.RoleAssistant, reducetest.Call("c")),
	)
}

type observed struct {
	kept, dropped, redacted eventlog.Ranges
	pointers                []records.Pointer
	tokens, chars           int64
}

func observe(v reduce.View, conv *reduce.Conversation) observed {
	var r records.Projection
	r.Observe(&records.Observation{}, v, conv, nil)
	return observed{r.Kept, r.Dropped, r.Redacted, r.Pointers, r.ReclaimedTokens, r.ReclaimedChars}
}

func TestObserve(t *testing.T) {
	conv := aSession()
	all := conv.Groups()
	for name, c := range map[string]struct {
		edit func(*reduce.Editor) bool
		want observed
	}{
		"nothing done": {func(*reduce.Editor) bool { return true }, observed{
			kept: eventlog.Ranges{{From: 1, To: 3}, {From: 5, To: 7}},
		}},
		"one of two results stubbed": {func(e *reduce.Editor) bool {
			return e.Replace(1, &all[1].Calls[1], reduce.Stubbed, "ctx:3.1", "retention", "old")
		}, observed{
			kept: eventlog.Ranges{{From: 1, To: 2}, {From: 5, To: 7}}, redacted: eventlog.Ranges{{From: 3, To: 3}},
			pointers: []records.Pointer{{Seq: 3, Block: 1, Kind: reduce.Stubbed, Reducer: "retention", Reason: "old", Reclaimed: 98}},
			tokens:   98, chars: 193,
		}},
		"clipped, omitted and shortened": {func(e *reduce.Editor) bool {
			return e.Replace(1, &all[1].Calls[0], reduce.Clipped, "ää", "clipping", "large") && e.OmitThinking(3, "thinking", "old") &&
				e.ClipAnchor(0, 0, 0, "äää", "window", "half")
		}, observed{
			kept:     eventlog.Ranges{{From: 2, To: 2}, {From: 5, To: 5}, {From: 7, To: 7}},
			redacted: eventlog.Ranges{{From: 1, To: 1}, {From: 3, To: 3}, {From: 6, To: 6}},
			pointers: []records.Pointer{
				{Seq: 1, Block: 0, Kind: reduce.Clipped, Reducer: "window", Reason: "half", Reclaimed: 98},
				{Seq: 3, Block: 0, Kind: reduce.Clipped, Reducer: "clipping", Reason: "large", Reclaimed: 99},
				{Seq: 6, Block: 0, Kind: reduce.Omitted, Reducer: "thinking", Reason: "old", Reclaimed: 100},
			},
			tokens: 98 + 99 + 100, chars: 197 + 198 + 200,
		}},
		"collapsed": {func(e *reduce.Editor) bool {
			return e.Replace(1, &all[1].Calls[0], reduce.Stubbed, "x", "retention", "old") && e.Collapse(6, nil, "gone: ää")
		}, observed{
			// What the user said last stays.
			kept: eventlog.Ranges{{From: 1, To: 1}, {From: 5, To: 5}, {From: 7, To: 7}}, dropped: eventlog.Ranges{{From: 2, To: 3}, {From: 6, To: 6}},
			// The digest has 10 bytes and a message's overhead.
			tokens: int64(all[1].Tokens+all[3].Tokens) - (budget.MessageOverhead + 3),
			chars:  (3 + 2 + 2 + 200 + 200) + 200 + 4 - 8,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			e := reduce.NewView(gauge, all).Editor()
			if !c.edit(e) {
				t.Fatal("an edit was refused")
			}
			if got := observe(e.View(), conv); !reflect.DeepEqual(got, c.want) {
				t.Errorf("\n got %+v\nwant %+v", got, c.want)
			}
		})
	}
}

// An event may answer calls of several groups, or answer calls and say something else: it is in one list
// only.
func TestObserveEventInSeveralGroups(t *testing.T) {
	conv := conversation(
		reducetest.Say(eventlog.RoleUser, reducetest.Text(body)),
		reducetest.Say(eventlog.RoleAssistant, reducetest.Call("a")),
		reducetest.Say(eventlog.RoleUser, reducetest.Result("a", body), reducetest.Text("and further")),
		reducetest.Say(eventlog.RoleAssistant, reducetest.Text("ok")),
		reducetest.Say(eventlog.RoleUser, reducetest.Text("at last")),
	)
	all := conv.Groups()
	if len(all) != 5 || all[2].First != 3 || all[1].Last != 3 {
		t.Fatalf("%d groups", len(all))
	}
	for name, c := range map[string]struct {
		edit func(*reduce.Editor) bool
		want [3]eventlog.Ranges // kept, dropped, redacted
	}{
		"in full":             {func(*reduce.Editor) bool { return true }, [3]eventlog.Ranges{{{From: 1, To: 5}}}},
		"its result stubbed":  {func(e *reduce.Editor) bool { return e.Replace(1, &all[1].Calls[0], reduce.Stubbed, "x", "r", "r") }, [3]eventlog.Ranges{{{From: 1, To: 2}, {From: 4, To: 5}}, nil, {{From: 3, To: 3}}}},
		"its result left":     {func(e *reduce.Editor) bool { return e.Collapse(2, nil, "x") }, [3]eventlog.Ranges{{{From: 1, To: 1}, {From: 4, To: 5}}, {{From: 2, To: 2}}, {{From: 3, To: 3}}}},
		"both left":           {func(e *reduce.Editor) bool { return e.Collapse(3, nil, "x") }, [3]eventlog.Ranges{{{From: 1, To: 1}, {From: 4, To: 5}}, {{From: 2, To: 3}}}},
		"left, but its words": {func(e *reduce.Editor) bool { return e.Collapse(3, map[*reduce.Group]bool{all[2]: true}, "x") }, [3]eventlog.Ranges{{{From: 1, To: 1}, {From: 4, To: 5}}, {{From: 2, To: 2}}, {{From: 3, To: 3}}}},
	} {
		t.Run(name, func(t *testing.T) {
			e := reduce.NewView(gauge, all).Editor()
			if !c.edit(e) {
				t.Fatal("the edit was refused")
			}
			got := observe(e.View(), conv)
			if lists := [3]eventlog.Ranges{got.kept, got.dropped, got.redacted}; !reflect.DeepEqual(lists, c.want) {
				t.Errorf("kept, dropped, redacted: %v, want %v", lists, c.want)
			}
		})
	}
}

// naively observes a view by going through every event of the log.
func naively(v reduce.View, conv *reduce.Conversation, head eventlog.Seq) observed {
	var o observed
	shown, left, changed := map[eventlog.Seq]bool{}, map[eventlog.Seq]bool{}, map[eventlog.Seq]bool{}
	d, _ := v.Digest()
	o.tokens, o.chars = -int64(v.Tokens()), -int64(utf8.RuneCountInString(d.Text))
	for _, g := range conv.Groups() {
		o.tokens += int64(g.Tokens)
		at := slices.Index(v.Groups(), g)
		for m, msg := range g.Messages {
			for _, seq := range msg.Seqs {
				shown[seq], left[seq] = shown[seq] || at >= 0, left[seq] || at < 0
			}
			for b, block := range msg.Blocks {
				edit, edited := reduce.Edit{}, false
				if at >= 0 {
					edit, edited = v.Edit(at, m, b)
				}
				if edited {
					changed[block.Seq] = true
				}
				if edited || at < 0 {
					o.chars += int64(reduce.Chars(block.Block) - utf8.RuneCountInString(edit.Text))
				}
			}
		}
	}
	add := func(list *eventlog.Ranges, seq eventlog.Seq) {
		*list = append(*list, eventlog.Range{From: seq, To: seq})
	}
	for _, r := range conv.Reminders() {
		left[r.Seq] = true // observe shows none
	}
	for seq := eventlog.Seq(1); seq <= head; seq++ {
		switch {
		case changed[seq] || shown[seq] && left[seq]:
			add(&o.redacted, seq)
		case shown[seq]:
			add(&o.kept, seq)
		case left[seq]:
			add(&o.dropped, seq)
		}
	}
	return o
}

func TestObserveAgainstEveryEvent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := logtest.GenLog(1, 40).Draw(t, "log")
		conv := reduce.NewConversation(gauge)
		for _, e := range log {
			conv.Append(e)
		}
		e := reduce.NewView(gauge, conv.Groups()).Editor()
		for range rapid.IntRange(0, 10).Draw(t, "edits") {
			v := e.View()
			if v.Len() == 0 {
				break
			}
			i := rapid.IntRange(0, v.Len()-1).Draw(t, "group")
			g := v.Group(i)
			switch verb := rapid.IntRange(0, 3).Draw(t, "verb"); {
			case verb == 0 && len(g.Calls) > 0:
				e.Replace(i, &g.Calls[0], reduce.Stubbed, "gone", "test", "why")
			case verb == 1:
				e.OmitThinking(i, "test", "why")
			case verb == 2 && rapid.IntRange(0, 3).Draw(t, "leaves") == 0:
				e.Collapse(g.First, nil, "gone")
			case verb == 3:
				e.ClipAnchor(i, 0, 0, "ö", "test", "why")
			}
		}
		v := e.View()
		got, want := observe(v, conv), naively(v, conv, conv.Head())
		for _, list := range []*eventlog.Ranges{&got.kept, &got.dropped, &got.redacted} {
			for i := 1; i < len(*list); i++ {
				if (*list)[i].From <= (*list)[i-1].To+1 {
					t.Fatalf("%v are not joined and in order", *list)
				}
			}
			*list = oneByOne(*list)
		}
		want.pointers = got.pointers
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(observed{}), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("(-want +got):\n%s\nof %s", diff, fmt.Sprint(log))
		}
	})
}

func oneByOne(ranges eventlog.Ranges) eventlog.Ranges {
	var all eventlog.Ranges
	for _, seq := range ranges.Seqs() {
		all = append(all, eventlog.Range{From: seq, To: seq})
	}
	return all
}

// TestObserveReminders: reminders that are shown count as kept, and the others as dropped.
func TestObserveReminders(t *testing.T) {
	once := uint32(1)
	conv := conversation(
		reducetest.Say(eventlog.RoleUser, reducetest.Text(body)),
		&eventlog.Reminder{Body: "old", DedupeKey: "k"},
		&eventlog.Reminder{Body: "new", DedupeKey: "k"},
		&eventlog.Reminder{Body: "over", TTLTurns: &once},
		reducetest.Say(eventlog.RoleAssistant, reducetest.Text("done")),
		reducetest.Say(eventlog.RoleAssistant, reducetest.Text("more")),
	)
	var r records.Projection
	r.Observe(&records.Observation{}, reduce.NewView(gauge, conv.Groups()), conv, conv.Reminders()[1:2])
	if want := (eventlog.Ranges{{From: 1, To: 1}, {From: 3, To: 3}, {From: 5, To: 6}}); !slices.Equal(r.Kept, want) {
		t.Errorf("kept: %v, want %v", r.Kept, want)
	}
	if want := (eventlog.Ranges{{From: 2, To: 2}, {From: 4, To: 4}}); !slices.Equal(r.Dropped, want) {
		t.Errorf("dropped: %v, want %v", r.Dropped, want)
	}
}

// TestObserveAsItGrows: observing a log step by step as it grows gives the same as observing all of it at
// once.
func TestObserveAsItGrows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		conv := reduce.NewConversation(gauge)
		policy, state, last := reducetest.Policy(), reduce.State{}, &records.Observation{}
		b := budget.Budget{Target: rapid.Uint64Range(300, 3000).Draw(t, "target"), MaxTokens: 4000, YellowAt: 0.5, RedAt: 0.8}
		for _, e := range logtest.GenLog(1, 60).Draw(t, "log") {
			conv.Append(e)
			result, err := reduce.NewPipeline(policy, conv).Run(b, state, reduce.Ask{})
			if err != nil {
				continue
			}
			state = result.State
			var grown, fresh records.Projection
			grown.Observe(last, result.View, conv, nil)
			fresh.Observe(&records.Observation{}, result.View, conv, nil)
			if diff := cmp.Diff(fresh, grown, cmpopts.EquateEmpty(), cmpopts.IgnoreUnexported(projection.Options{})); diff != "" {
				t.Fatalf("at event %d (-at once +as it grew):\n%s", e.Seq, diff)
			}
		}
	})
}

// Observing a view that grew allocates only what the answer takes, however long the view is.
func TestObserveGoesThroughWhatIsNew(t *testing.T) {
	conv, last := reduce.NewConversation(gauge), &records.Observation{}
	n := eventlog.Seq(0)
	grow := func() reduce.View {
		n++
		conv.Append(eventlog.Event{Seq: n, ID: fmt.Sprint(n), Body: reducetest.Say(eventlog.RoleUser, reducetest.Text("more"))})
		result, err := reduce.NewPipeline(reduce.DefaultPolicy(), conv).Run(budget.Budget{Target: 1 << 20, MaxTokens: 1 << 20, YellowAt: 0.5, RedAt: 0.8}, reduce.State{}, reduce.Ask{})
		if err != nil {
			t.Fatal(err)
		}
		return result.View
	}
	for range 3_000 {
		grow()
	}
	var r records.Projection
	r.Observe(last, grow(), conv, nil)
	v := grow()
	if allocated := testing.AllocsPerRun(10, func() { r.Observe(last, v, conv, nil) }); allocated > 8 {
		t.Errorf("%v allocations", allocated)
	}
	if whole := testing.AllocsPerRun(10, func() { r.Observe(&records.Observation{}, v, conv, nil) }); whole < 12 {
		t.Errorf("%v allocations for all of it: the test shows nothing", whole)
	}
}
