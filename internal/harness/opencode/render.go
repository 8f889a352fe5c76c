package opencode

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// renderer makes messages of events. For the reader it makes what follows from the events alone, as the base
// of differences; for the writer it also adds what the harness requires of a message.
type renderer struct {
	session, directory string
	// complete adds what the harness requires and the events do not have.
	complete bool
	// metadata adds the tools' metadata, of which only what labels hold is kept.
	metadata bool
	parent   string    // id of the user message that the next reply answers
	model    string    // of the last reply, or of the session's first before there is one
	last     time.Time // of the message before
	warn     func(format string, args ...any)
	id       func(e *eventlog.Event) string
	// placed, if not nil, is called with the id of the message that holds an event's content.
	placed func(event, message string)
}

func (r *renderer) place(event, message string) {
	if r.placed != nil {
		r.placed(event, message)
	}
}

func (r *renderer) messageID(e *eventlog.Event) string {
	if r.id != nil {
		return r.id(e)
	}
	return messageID(e.ID)
}

func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// sessionInfo makes the first members of the file's info.
func sessionInfo(id, version, directory, parent string) jsontext.Value {
	return transcript.Object("id", id, "version", transcript.Optional(version),
		"directory", transcript.Optional(directory), "parentID", transcript.Optional(parent))
}

func messageOf(info jsontext.Value, parts ...jsontext.Value) jsontext.Value {
	return transcript.Object("info", info, "parts", parts)
}

// parts collects the parts of one message.
type parts struct {
	session, message string
	list             []jsontext.Value
}

func (p *parts) add(kind string, members ...any) jsontext.Value {
	v := transcript.With(transcript.Object("id", partID(p.message, len(p.list)+1),
		"sessionID", p.session, "messageID", p.message, "type", kind), members...)
	p.list = append(p.list, v)
	return v
}

// raw inserts a part unchanged at a position, counted from 1; an unknown position is the end.
func (p *parts) raw(json string, at int) {
	if at < 1 || at > len(p.list) {
		at = len(p.list) + 1
	}
	p.list = slices.Insert(p.list, at-1, jsontext.Value(json))
}

// message makes one message of events.
func (r *renderer) message(events []eventlog.Event, results map[string]result) jsontext.Value {
	p := &parts{session: r.session, message: r.messageID(&events[0])}
	role := eventlog.RoleUser
	var customs []eventlog.Event
	var info jsontext.Value
	for i := range events {
		if m, ok := events[i].Body.(*eventlog.Message); ok && m.Role != eventlog.RoleTool {
			r.place(events[i].ID, p.message)
			if m.Role == eventlog.RoleAssistant {
				role = m.Role
			}
		}
		if _, ok := events[i].Body.(*eventlog.Custom); ok {
			customs = append(customs, events[i])
		}
	}
	if role == eventlog.RoleAssistant {
		info = r.assistant(p, events, results, "")
	} else {
		info = r.user(p, events)
	}
	for _, e := range customs {
		if c, ok := e.Body.(*eventlog.Custom); ok && strings.HasPrefix(c.Type, Name+".part-") {
			p.raw(c.JSON, partNumber(e.ID))
		}
	}
	return messageOf(info, p.list...)
}

// partNumber returns the position of a part that was kept unchanged, from the id of its event; 0 if there is none.
func partNumber(event string) int {
	_, n, _ := strings.Cut(event, "/part-")
	i, err := strconv.Atoi(n)
	if err != nil {
		return 0
	}
	return i
}

// info makes the first members of a message's info; completed is nil unless the message is a finished reply.
// The harness orders messages by time and then by id, so that times in a file must not decrease.
func (r *renderer) info(message, role string, at time.Time, completed any, more ...any) jsontext.Value {
	if r.complete {
		if at.Before(r.last) {
			at = r.last
		}
		r.last = at
	}
	return transcript.With(transcript.Object("id", message, "sessionID", r.session, "role", role,
		"time", transcript.Object("created", millis(at), "completed", completed)), more...)
}

func (r *renderer) user(p *parts, events []eventlog.Event) jsontext.Value {
	info := r.userInfo(p.message, events[0].Time)
	for i := range events {
		m, ok := events[i].Body.(*eventlog.Message)
		if !ok {
			continue
		}
		for _, block := range m.Blocks {
			switch b := block.(type) {
			case eventlog.Text:
				switch {
				case m.Role == eventlog.RoleSystem:
					p.add("text", "text", b.Text, "ignored", true, "metadata", marked("role", "system"))
				case events[i].Labels[transcript.LabelInjected] == "true":
					p.add("text", "text", b.Text, "synthetic", true)
				default:
					p.add("text", "text", b.Text)
				}
			case eventlog.ToolResult: // in the part of its call
			default:
				r.other(p, b)
			}
		}
	}
	r.parent = p.message
	return info
}

// marked makes metadata of contextd's own.
func marked(members ...any) jsontext.Value {
	return transcript.Object(systemMark, transcript.Object(members...))
}

// userInfo returns the info of a user message, with what the harness requires.
func (r *renderer) userInfo(message string, at time.Time) jsontext.Value {
	info := r.info(message, "user", at, nil)
	if !r.complete {
		return info
	}
	return transcript.With(info, "agent", "build", "model", transcript.Object("providerID", providerOf(r.model), "modelID", r.model))
}

// request and reply make the two messages of a compaction.
func (r *renderer) request(e *eventlog.Event, c *eventlog.Compaction) jsontext.Value {
	return messageOf(r.userInfo(r.messageID(e), e.Time), jsontext.Value(c.NativeJSON))
}

func (r *renderer) reply(e *eventlog.Event, c *eventlog.Compaction) jsontext.Value {
	p := &parts{session: r.session, message: r.messageID(&eventlog.Event{ID: summaryID(e.ID), Time: e.Time})}
	s := eventlog.Event{ID: p.message, Time: e.Time, Labels: e.Labels, Body: &eventlog.Message{
		Role: eventlog.RoleAssistant, Blocks: []eventlog.Block{eventlog.Text{Text: c.Summary}},
	}}
	parent := r.parent
	r.parent = r.messageID(e)
	info := r.assistant(p, []eventlog.Event{s}, nil, "compaction")
	r.parent = parent
	return messageOf(info, p.list...)
}

// Ids of the harness begin with a prefix for their kind. Then come 48 bits, which for messages are the
// milliseconds and a count so that ids sort by time, and 14 letters and digits.
const (
	sessionPrefix = "ses"
	messagePrefix = "msg"
	partPrefix    = "prt"
)

const letters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

func name(seed string) string {
	sum := sha256.Sum256([]byte(seed))
	out := make([]byte, 14)
	for i := range out {
		out[i] = letters[int(sum[i])%len(letters)]
	}
	return string(out)
}

// makeID derives an id for something that has none. order must increase from call to call.
func makeID(prefix string, at time.Time, order int, seed string) string {
	n := (uint64(max(at.UnixMilli(), 0))<<12 + uint64(order)) & (1<<48 - 1)
	return fmt.Sprintf("%s_%012x%s", prefix, n, name(seed))
}

// idLength is the length of the harness's ids after the prefix: 12 hexadecimal digits of time and count, and
// 14 letters or digits.
const idLength = 12 + 14

// ownID reports whether a message id has the harness's form. Only such ids sort by time; the prefix alone
// does not show that.
func ownID(id string) bool {
	rest, ok := strings.CutPrefix(id, messagePrefix+"_")
	return ok && len(rest) == idLength && strings.IndexFunc(rest, func(c rune) bool { return !strings.ContainsRune(letters, c) }) < 0
}

// partID derives the id of the n-th part of a message.
func partID(message string, n int) string {
	return fmt.Sprintf("%s_%04x%s", partPrefix, n, name(message))
}

// inner are the marks that follow the message's id in the ids of its events.
var inner = []string{"/part-", "/step-", "/result-", "/empty-message", "/orphan-result", "/misplaced-block"}

// messageID returns the id of the message to which an event belongs.
func messageID(event string) string {
	for _, mark := range inner {
		if i := strings.Index(event, mark); i >= 0 {
			event = event[:i]
		}
	}
	return event
}
