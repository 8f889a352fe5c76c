package claude

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/content"
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// labelQueued says which record gave a message to the model that was sent while the agent
// worked: none of the type "user" does.
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
	// removed takes a prompt out of the queue. It went to the model in the middle of its
	// turn unless a reason says otherwise; versions before 2.1.246 give none.
	removed        = "remove"
	reasonAbsorbed = "absorbed_mid_turn"
)

// attachment is what a record of the type "attachment" carries of a queued prompt.
type attachment struct {
	Type        string         `json:"type"`
	Prompt      jsontext.Value `json:"prompt"` // a text, or blocks
	CommandMode word           `json:"commandMode"`
	Origin      origin         `json:"origin"`
	IsMeta      bool           `json:"isMeta"`
	SourceUUID  word           `json:"source_uuid"`
}

// queue follows what was sent to a session while its agent worked. A prompt that waits for the end of the
// turn comes back as a record of the type "user"; one that goes to the model at once comes as
// an attachment, as an operation that takes it out of the queue, or as both, in either order.
type queue struct {
	waiting []string
	// attached and taken are the prompts that came one way and not the other yet.
	attached, taken map[string]int
	// given are the prompts that came since the model last spoke.
	given map[string]bool
	// sources are the uuids of the records that attached prompts would have been.
	sources map[string]bool
}

func newQueue() queue {
	return queue{attached: map[string]int{}, taken: map[string]int{}, given: map[string]bool{}, sources: map[string]bool{}}
}

// operation follows the queue, and returns what one operation gave to the model.
func (q *queue) operation(rec *record) (prompt string, given bool) {
	text, named := "", false
	if blocks, err := content.AnthropicBlocks(rec.Content); err == nil && len(blocks) > 0 {
		text, named = said(blocks), true
	}
	switch rec.Operation {
	case "enqueue":
		if named {
			q.waiting = append(q.waiting, text)
		}
	case "popAll":
		if !named {
			q.waiting = nil
			break
		}
		q.take(text)
	case "dequeue", removed:
		if !named {
			text, named = q.next()
		}
		q.take(text)
		given = rec.Operation == removed && named && (rec.Reason == "" || rec.Reason == reasonAbsorbed)
	}
	return text, given && strings.TrimSpace(text) != "" && !taskBegins(text)
}

// next is the oldest prompt that waits. Notifications leave the queue without a record.
func (q *queue) next() (string, bool) {
	i := slices.IndexFunc(q.waiting, func(text string) bool { return !byHarness(text) })
	if i < 0 {
		i = 0
	}
	if i >= len(q.waiting) {
		return "", false
	}
	return q.waiting[i], true
}

func (q *queue) take(text string) {
	if i := slices.Index(q.waiting, text); i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
	}
}

// pair notes that a prompt came one way, and reports whether it had come the other.
func pair(other, one map[string]int, text string) bool {
	if other[text] > 0 {
		other[text]--
		return true
	}
	one[text]++
	return false
}

// byHarness reports whether a queued text is no human's.
func byHarness(text string) bool { return notification(text) || taskBegins(text) }

// taskBegins reports whether a queued text says that a command or a subagent began, which is for
// the program that runs the harness: no prompt after it holds it.
func taskBegins(text string) bool { return strings.HasPrefix(text, `{"task_id":`) }

// said joins the texts among the blocks.
func said(blocks []eventlog.Block) string { return strings.Join(transcript.Texts(blocks), "\n") }

// queued reads a record that gives a prompt from the queue to the model, and reports whether
// it did. What came before by another record is not said again.
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
			// The operation held the words alone.
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

// give appends a queued prompt as the message of the user that it was for the model.
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

// report warns of what waits at the end of the file.
func (q *queue) report(warn transcript.Warn) {
	n := 0
	for _, text := range q.waiting {
		if !byHarness(text) {
			n++
		}
	}
	if n > 0 {
		warn(0, "prompts that wait in the queue and that no model has seen: %d", n)
	}
}

// givenBefore reports whether the user's record says what the queue gave to the model just before.
func (q *queue) givenBefore(rec *record, blocks []eventlog.Block) bool {
	if rec.Type == "assistant" {
		return false
	}
	text := said(blocks)
	q.take(text)
	return q.sources[rec.UUID] || q.given[text]
}
