package claude

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/content"
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// labelQueued is on messages that were sent while the agent worked and came from the queue, not in a record
// of the type "user". It says in which kind of record they came.
const labelQueued = "claude.queued"

// The values of labelQueued.
const (
	queuedAttachment = "attachment"
	queuedRemoval    = "operation"
)

const (
	attachmentType = "attachment"
	operationType  = "queue-operation"
	queuedCommand  = "queued_command"
	// removed is the operation that takes a prompt out of the queue. The prompt went to the model within its
	// turn, unless a reason says otherwise; versions before 2.1.246 write no reason.
	removed        = "remove"
	reasonAbsorbed = "absorbed_mid_turn"
)

// attachment is a queued prompt in a record of the type "attachment".
type attachment struct {
	Type        string         `json:"type"`
	Prompt      jsontext.Value `json:"prompt"` // a text, or blocks
	CommandMode word           `json:"commandMode"`
	Origin      origin         `json:"origin"`
	IsMeta      bool           `json:"isMeta"`
	SourceUUID  word           `json:"source_uuid"`
}

// queue tracks the prompts that were sent to a session while its agent worked. A prompt that waits for the end of the
// turn comes later as a record of the type "user". One that goes to the model at once comes as an attachment, as an
// operation that removes it from the queue, or as both, in any order.
type queue struct {
	// waiting has the prompts in the order in which they came, also those that were taken. Those before humans are no
	// humans' or taken, those before first are taken.
	waiting       []prompted
	humans, first int
	// places are the indexes of the prompts that wait, by text.
	places map[string][]int
	// attached and taken count, by text, the prompts that came as an attachment, or as an operation, and not
	// yet as the other.
	attached, taken map[string]int
	// given are the prompts that went to the model since it last wrote something.
	given map[string]bool
	// sources are the uuids that attached prompts have if they come as records of the type "user".
	sources map[string]bool
}

// prompted is a prompt that was sent.
type prompted struct {
	text             string
	byHarness, taken bool
}

func newQueue() queue {
	return queue{places: map[string][]int{}, attached: map[string]int{}, taken: map[string]int{}, given: map[string]bool{}, sources: map[string]bool{}}
}

// operation applies one operation to the queue. given says that the prompt went to the model.
func (q *queue) operation(rec *record) (prompt string, given bool) {
	text, named := "", false
	if blocks, err := content.AnthropicBlocks(rec.Content); err == nil && len(blocks) > 0 {
		text, named = said(blocks), true
	}
	switch rec.Operation {
	case "enqueue":
		if named {
			q.places[text] = append(q.places[text], len(q.waiting))
			q.waiting = append(q.waiting, prompted{text: text, byHarness: byHarness(text)})
		}
	case "popAll":
		if !named {
			q.waiting, q.humans, q.first = nil, 0, 0
			clear(q.places)
			break
		}
		q.remove(text)
	case "dequeue", removed:
		if !named {
			text, named = q.next()
		}
		q.remove(text)
		given = rec.Operation == removed && named && (rec.Reason == "" || rec.Reason == reasonAbsorbed)
	}
	return text, given && strings.TrimSpace(text) != "" && !taskBegins(text)
}

// next returns the oldest waiting prompt, those of humans first, because notifications are removed from the queue
// without a record of their own.
func (q *queue) next() (string, bool) {
	for q.humans < len(q.waiting) && (q.waiting[q.humans].taken || q.waiting[q.humans].byHarness) {
		q.humans++
	}
	for q.first < len(q.waiting) && q.waiting[q.first].taken {
		q.first++
	}
	i := q.humans
	if i == len(q.waiting) {
		i = q.first
	}
	if i == len(q.waiting) {
		return "", false
	}
	return q.waiting[i].text, true
}

// remove takes the oldest prompt with a text out of the queue.
func (q *queue) remove(text string) {
	switch at := q.places[text]; len(at) {
	case 0:
		return
	case 1:
		q.waiting[at[0]] = prompted{taken: true}
		delete(q.places, text)
	default:
		q.waiting[at[0]] = prompted{taken: true}
		q.places[text] = at[1:]
	}
}

// pair counts a prompt that came in one kind of record. If it came in the other before, it uncounts that and
// returns true.
func pair(other, one map[string]int, text string) bool {
	if other[text] > 0 {
		other[text]--
		return true
	}
	one[text]++
	return false
}

// byHarness reports whether a queued text was written by the harness.
func byHarness(text string) bool { return notification(text) || taskBegins(text) }

// taskBegins reports whether a queued text says that a command or a subagent began. Such texts are for the
// program that runs the harness; the model never gets them.
func taskBegins(text string) bool { return strings.HasPrefix(text, `{"task_id":`) }

// said joins the texts among the blocks.
func said(blocks []eventlog.Block) string { return strings.Join(transcript.Texts(blocks), "\n") }

// queued reads a record by which the queue gives a prompt to the model, and reports whether it appended one.
// A prompt that came in the other kind of record before is not appended again.
func (r *reader) queued(rec *record, entry transcript.Entry) bool {
	switch rec.Type {
	case operationType:
		q := &r.of(r.session(rec)).queue
		text, given := q.operation(rec)
		if !given || pair(q.attached, q.taken, text) {
			return false
		}
		frame := frameMessage
		if byHarness(text) {
			frame = frameNotification
		}
		r.give(rec, entry, []eventlog.Block{eventlog.Text{Text: text}}, queuedRemoval, frame, byHarness(text))
		return true
	case attachmentType:
		var a attachment
		if transcript.Decode(rec.Attachment, &a) != nil || a.Type != queuedCommand {
			return false
		}
		blocks, err := content.AnthropicBlocks(a.Prompt)
		if err != nil {
			r.out.Warn(entry.Line, "a queued prompt has an unexpected shape: %v", err)
			return false
		}
		return r.attached(rec, entry, &a, blocks)
	}
	return false
}

func (r *reader) attached(rec *record, entry transcript.Entry, a *attachment, blocks []eventlog.Block) bool {
	text, session := said(blocks), r.session(rec)
	at := r.of(session)
	if _, again := at.events[rec.UUID]; !again {
		if _, spoken := at.events[string(a.SourceUUID)]; spoken && a.SourceUUID != "" {
			return false
		}
		if pair(at.queue.taken, at.queue.attached, text) {
			// The operation had the text, but no other blocks.
			blocks = slices.DeleteFunc(blocks, func(b eventlog.Block) bool { _, isText := b.(eventlog.Text); return isText })
		}
	}
	if len(blocks) == 0 {
		return false
	}
	if a.SourceUUID != "" {
		at.queue.sources[string(a.SourceUUID)] = true
	}
	r.begin(session, rec)
	r.give(rec, entry, blocks, queuedAttachment, a.framed(), a.injected(text))
	return true
}

// injected reports whether no human wrote the prompt.
func (a *attachment) injected(text string) bool {
	switch {
	case a.IsMeta:
		return true
	case a.Origin.Value.Kind != "":
		return a.Origin.Value.Kind != human
	case a.CommandMode != "" && a.CommandMode != "prompt" && a.CommandMode != "bash":
		return true
	}
	return byHarness(text)
}

// give appends a queued prompt as a user message, at the place where the model got it.
func (r *reader) give(rec *record, entry transcript.Entry, blocks []eventlog.Block, by, frame string, injected bool) {
	session := r.session(rec)
	_, again := r.of(session).events[rec.UUID]
	if text := said(blocks); text != "" && !again {
		r.of(session).queue.given[text] = true
	}
	entry.Native = r.native(rec, entry.Native)
	entry.Labels = map[string]string{labelQueued: by}
	r.frame(&entry, rec, frame)
	if injected {
		entry.Labels[transcript.LabelInjected] = "true"
	}
	entry.Body = &eventlog.Message{Role: eventlog.RoleUser, Blocks: blocks}
	p := r.of(session).pending
	if p != nil {
		entry.Labels[labelBetween] = "true"
	}
	if id := r.append(session, rec, entry); p != nil && id != "" {
		p.since = append(p.since, id) // the harness gave it after the boundary
	}
}

// report adds warnings about prompts that still wait at the end of the file.
func (q *queue) report(warn transcript.Warn) {
	n := 0
	for _, p := range q.waiting {
		if !p.taken && !p.byHarness {
			n++
		}
	}
	if n > 0 {
		warn(0, "prompts that wait in the queue and that no model has seen: %d", n)
	}
}

// givenBefore reports whether a user's record repeats what the queue gave to the model just before.
func (q *queue) givenBefore(rec *record, blocks []eventlog.Block) bool {
	if rec.Type == "assistant" {
		return false
	}
	text := said(blocks)
	q.remove(text)
	return q.sources[rec.UUID] || q.given[text]
}
