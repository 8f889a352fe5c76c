package explain

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/contextd/contextd/internal/harness"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/pointers"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/render"
)

// shownBlock says how the context shows a block of the log.
type shownBlock struct {
	group *reduce.Group
	// here says that the group is in the view; nothing is shown of a collapsed group. dropped is set if a
	// reducer dropped the group by itself, outside of a collapse.
	here    bool
	dropped *reduce.Dropped
	edit    *reduce.Edit // nil if the block is as in the log
	// sent are the blocks sent for this one: the block as edited, or none if it was omitted. After a call
	// without a result comes the result that contextd made up.
	sent []eventlog.Block
}

// lookUp fills places: for each block of the conversation, how the context shows it.
func (x *explainer) lookUp() {
	x.places = map[eventlog.Place]shownBlock{}
	for _, g := range x.Conversation.Groups() {
		if x.Result.View.Ended() != nil {
			return
		}
		for m := range g.Messages {
			for _, b := range g.Messages[m].Blocks {
				x.places[eventlog.Place{Seq: b.Seq, Block: b.Index}] = shownBlock{group: g}
			}
		}
	}
	v := x.Result.View
	for i := range v.Len() {
		if v.Ended() != nil {
			return
		}
		if d := v.Dropped(i); d != nil {
			x.lookUpDropped(v.Group(i), d)
			continue
		}
		x.lookUpShown(v, i)
		x.lookUpInterrupted(v.Group(i))
	}
}

// lookUpShown fills places for the blocks of group i, which is in the view.
func (x *explainer) lookUpShown(v reduce.View, i int) {
	for m, message := range render.GroupMessages(v, i) {
		sent := message.Blocks
		for b, block := range v.Group(i).Messages[m].Blocks {
			shown := shownBlock{group: v.Group(i), here: true}
			if edit, ok := v.Edit(i, m, b); ok {
				shown.edit = &edit
			}
			if shown.edit == nil || shown.edit.Kind != reduce.Omitted {
				shown.sent, sent = sent[:1:1], sent[1:]
			}
			x.places[eventlog.Place{Seq: block.Seq, Block: block.Index}] = shown
		}
	}
}

func (x *explainer) lookUpDropped(g *reduce.Group, d *reduce.Dropped) {
	for m := range g.Messages {
		for _, b := range g.Messages[m].Blocks {
			x.places[eventlog.Place{Seq: b.Seq, Block: b.Index}] = shownBlock{group: g, dropped: d}
		}
	}
}

// lookUpInterrupted adds the results that contextd made up for interrupted calls to the places of these
// calls, as those results are not in the log. Calls are in the order of their blocks.
func (x *explainer) lookUpInterrupted(g *reduce.Group) {
	calls := g.Calls
	for m := range g.Messages {
		for _, b := range g.Messages[m].Blocks {
			if _, ok := b.Block.(eventlog.ToolCall); !ok {
				continue
			}
			call := &calls[0]
			calls = calls[1:]
			if call.Interrupted {
				at := eventlog.Place{Seq: b.Seq, Block: b.Index}
				shown := x.places[at]
				shown.sent = append(shown.sent, g.Messages[call.Result].Blocks[0].Block)
				x.places[at] = shown
			}
		}
	}
}

// logged searches the log. It reports whether the block that a pointer names was sent in full.
func (x *explainer) logged(ctx context.Context) (seen bool, err error) {
	from, to := eventlog.Seq(1), x.Head
	if x.pointer != nil {
		from, to = x.pointer.Seq, x.pointer.Seq
	}
	for event, err := range x.store.Read(ctx, x.SessionID, from, to) {
		if err != nil {
			return false, err
		}
		if c, ok := event.Body.(*eventlog.Compaction); ok && c.Decision != nil && x.pointer == nil {
			continue // what the digest quotes of its summary was searched by written
		}
		blocks := pointers.Blocks(event)
		if x.pointer != nil {
			if x.pointer.Block >= len(blocks) {
				return false, x.missing(pointers.BlocksThere(event))
			}
			_, seen := x.block(event, x.pointer.Block, blocks[x.pointer.Block])
			return seen, nil
		}
		_, message := event.Body.(*eventlog.Message)
		for i, b := range blocks {
			if x.full() {
				return false, nil
			}
			added, _ := x.block(event, i, b)
			message = message || added
		}
		if !message {
			x.nonMessage(event)
		}
	}
	return false, nil
}

// block adds a sighting of a block of an event if the block has what is searched for. It reports whether it did so
// and whether the text was sent.
func (x *explainer) block(e eventlog.Event, index int, b eventlog.Block) (added, seen bool) {
	at := eventlog.Place{Seq: e.Seq, Block: index}
	shown, said := x.places[at]
	held := x.held(b)
	if x.pointer == nil && !held && !slices.ContainsFunc(shown.sent, func(b eventlog.Block) bool { return x.in(textsOf(b, asSent)) }) {
		return false, false
	}
	whole := shown.here && shown.edit == nil
	gone := whole && x.sent.gone(at, b)
	scrubbed := whole && x.scrubbed(e, index, b, shown.sent)
	seen = x.readIn(&x.sent, at, shown.sent)
	if x.pointer != nil {
		held, seen = true, whole && !gone && !scrubbed && !x.sent.described[at]
	}
	if !held && !seen {
		return false, false
	}
	s := Sighting{Seq: at.Seq, Block: at.Block, Seen: seen, Pointer: reduce.Pointer(at.Seq, at.Block)}
	switch {
	case at.Seq > x.Record.AsOf:
		s.Shown, s.Reason = ShownLater, x.tooLate()
	case !said:
		s.Shown, s.Reason = ShownOmitted, x.unsaid(e)
	case shown.dropped != nil:
		s.Shown, s.Reason = ShownOmitted, shown.dropped.Reducer+": "+shown.dropped.Reason
	case !shown.here:
		s.Shown, s.Reason = ShownCollapsed, x.left(shown.group)
	case shown.edit != nil:
		s.Shown, s.Reason = shownAs(shown.edit.Kind), shown.edit.Reducer+": "+shown.edit.Reason
	case gone:
		s.Shown, s.Reason = ShownOmitted, "not sent: the format leaves it out"
	case x.sent.described[at]:
		s.Shown, s.Reason = ShownStubbed, "the format shows a text in its place"
	case seen:
		s.Shown, s.Reason = ShownVerbatim, x.added(e, index, b, held)
	default:
		s.Shown, s.Reason = ShownVerbatim, x.unread(b, scrubbed)
	}
	x.add(s)
	return true, seen
}

// unread says why a text of a block cannot be read there, although the block was sent unedited.
func (x *explainer) unread(b eventlog.Block, scrubbed bool) string {
	switch {
	case scrubbed:
		return scrubbedReason
	case !x.in(readableOf(b)):
		return "it is where no model reads it: in a seal, in binary data or in markup"
	default:
		return "JSON is sent without the whitespace between its tokens"
	}
}

// added says who added a text that can be read in a block; empty if the block itself has it.
func (x *explainer) added(e eventlog.Event, index int, b eventlog.Block, held bool) string {
	switch {
	case held || x.in(textsOf(b, asSent)):
		return ""
	case x.in(framed(e, index)):
		return "the harness added it"
	default:
		return addedText
	}
}

const scrubbedReason = "scrub: credentials in it were replaced"

// scrubbed reports whether the policy replaced credentials in a block that was sent.
func (x *explainer) scrubbed(e eventlog.Event, index int, b eventlog.Block, sent []eventlog.Block) bool {
	if !x.Record.Projection.Scrub || len(sent) == 0 {
		return false
	}
	texts := textsOf(sent[0], asSent)
	return !slices.Equal(texts, textsOf(b, asSent)) && !slices.Equal(texts, framed(e, index))
}

// framed returns the texts of a block, including the words that the event's harness puts around them.
func framed(e eventlog.Event, index int) []string {
	if m, ok := harness.Sent(e).Body.(*eventlog.Message); ok && index < len(m.Blocks) {
		return textsOf(m.Blocks[index], asSent)
	}
	return nil
}

const notSent = "only messages and reminders are sent"

// unsaid says why an event is in no group.
func (x *explainer) unsaid(e eventlog.Event) string {
	at := x.Conversation.Boundary()
	_, message := e.Body.(*eventlog.Message)
	switch {
	case x.Conversation.Skipped(e.Seq) && !harness.Seen(e):
		return "the harness shows no reply that failed to a model"
	case x.Conversation.Skipped(e.Seq) && e.Seq > at:
		return "the harness went on from a message before it"
	case x.Conversation.Skipped(e.Seq), !message && e.Seq < at:
		return fmt.Sprintf("the harness dropped it with its compaction at event %d", at)
	case !message:
		return notSent
	case at > 0:
		return fmt.Sprintf("the harness dropped the call that it answers with its compaction at event %d", at)
	default:
		return "it answers no open call"
	}
}

// shownAs maps the kind of an edit to what is shown. All kinds except these two replace the block by a pointer.
func shownAs(k reduce.EditKind) Shown {
	switch k {
	case reduce.Clipped:
		return ShownClipped
	case reduce.Omitted:
		return ShownOmitted
	default:
		return ShownStubbed
	}
}

// nonMessage adds a sighting for an event that is no message, if it holds the text.
func (x *explainer) nonMessage(e eventlog.Event) {
	s := Sighting{Seq: e.Seq, Shown: ShownOmitted, Reason: notSent}
	var texts []string
	switch b := e.Body.(type) {
	case *eventlog.Reminder:
		texts = []string{b.Body}
		s.Shown = ShownReminder
		s.Seen, s.Reason = x.reminder(e.Seq)
	case *eventlog.Compaction:
		texts = []string{b.Summary, b.NativeJSON}
	case *eventlog.Custom:
		texts = append([]string{b.Type, b.JSON}, stringsIn(b.JSON)...)
	}
	if !x.in(texts) {
		return
	}
	if e.Seq > x.Record.AsOf {
		s.Shown, s.Seen, s.Reason = ShownLater, false, x.tooLate()
	}
	x.add(s)
}

// reminder says what became of the reminder of an event.
func (x *explainer) reminder(seq eventlog.Seq) (seen bool, reason string) {
	all := x.Conversation.Reminders()
	if x.fates == nil {
		x.fates = reduce.Fates(all, x.Conversation.Turns(), x.Result.State.CollapsedThrough)
	}
	i, found := slices.BinarySearchFunc(all, seq, func(r reduce.Reminder, seq eventlog.Seq) int { return cmp.Compare(r.Seq, seq) })
	if !found {
		return false, ""
	}
	switch x.fates[i] {
	case reduce.ReminderExpired:
		reason = fmt.Sprintf("its %d turns were over", *all[i].TTLTurns)
	case reduce.ReminderDeduped:
		reason = fmt.Sprintf("a newer reminder has its dedupe key %q", all[i].DedupeKey)
	case reduce.ReminderFolded:
		reason = fmt.Sprintf("it was dropped with the groups through event %d, where only its beginning may be quoted", x.Result.State.CollapsedThrough)
	}
	live := x.fates[i] == reduce.ReminderLive
	if live && !strings.Contains(all[i].Body, x.text) {
		return false, scrubbedReason
	}
	return live, reason
}

func (x *explainer) tooLate() string {
	return fmt.Sprintf("the context was made of the log up to event %d", x.Record.AsOf)
}
