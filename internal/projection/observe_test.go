package projection_test

import (
	"fmt"
	"slices"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/logtest"
	"github.com/contextd/contextd/internal/reduce"
)

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
