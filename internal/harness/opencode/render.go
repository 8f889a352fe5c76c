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

// renderer makes messages of events. What it makes for the reader is what follows
// from the events; for the writer it adds what the harness requires of a message.
type renderer struct {
	session, directory string
	// complete adds what the harness requires and events do not say.
	complete bool
	// metadata adds the tools' metadata, of which the reader keeps nothing else.
	metadata bool
	parent   string    // the user's message that replies answer
	model    string    // of the last reply, or the first one to come
	last     time.Time // of the message before
	warn     func(format string, args ...any)
	id       func(e *eventlog.Event) string
	// placed, if not nil, is called with the message that an event's content is in.
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

// sessionInfo begins the file's info.
func sessionInfo(id, version, directory, parent string) jsontext.Value {
	return transcript.Object("id", id, "version", transcript.Optional(version),
		"directory", transcript.Optional(directory), "parentID", transcript.Optional(parent))
}

// messageOf puts a message together.
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

// raw adds a part unchanged, at its place if it is known.
func (p *parts) raw(json string, at int) {
	if at < 1 || at > len(p.list) {
		at = len(p.list) + 1
	}
	p.list = slices.Insert(p.list, at-1, jsontext.Value(json))
}

// message makes the message of events that are one.
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

// partNumber is the position in the id of a part that was kept unchanged.
func partNumber(event string) int {
	_, n, _ := strings.Cut(event, "/part-")
	i, err := strconv.Atoi(n)
	if err != nil {
		return 0
	}
	return i
}

// info begins a message's info; completed is nil but of a reply that is complete. The harness
// orders messages by their times and, where these are equal, by their ids, so that what it is
// given must not go back in time.
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
			case eventlog.ToolResult: // is in the part of its call
			default:
				r.other(p, b)
			}
		}
	}
	r.parent = p.message
	return info
}

// marked is metadata of contextd's own.
func marked(members ...any) jsontext.Value {
	return transcript.Object(systemMark, transcript.Object(members...))
}

// userInfo is the info of a user's message, with what the harness requires of it.
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

// Ids of the harness begin with what they are of, and those of messages sort by
// their time: 48 bits of milliseconds and a count, then letters and digits.
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

// makeID makes an id for something that has none; order must grow.
func makeID(prefix string, at time.Time, order int, seed string) string {
	n := (uint64(max(at.UnixMilli(), 0))<<12 + uint64(order)) & (1<<48 - 1)
	return fmt.Sprintf("%s_%012x%s", prefix, n, name(seed))
}

// idLength is that of the harness's ids after the prefix: a time and 14 letters.
const idLength = 12 + 14

// ownID reports whether the id of a message is one of the harness's: only such ids sort by
// their time, and others have messages that begin with the same letters.
func ownID(id string) bool {
	rest, ok := strings.CutPrefix(id, messagePrefix+"_")
	return ok && len(rest) == idLength && strings.IndexFunc(rest, func(c rune) bool { return !strings.ContainsRune(letters, c) }) < 0
}

// partID numbers the parts of a message.
func partID(message string, n int) string {
	return fmt.Sprintf("%s_%04x%s", partPrefix, n, name(message))
}

// inner are the marks after a message's id in the ids of its events.
var inner = []string{"/part-", "/step-", "/result-", "/empty-message", "/orphan-result", "/misplaced-block"}

// messageID is the id of the message that an event is part of.
func messageID(event string) string {
	for _, mark := range inner {
		if i := strings.Index(event, mark); i >= 0 {
			event = event[:i]
		}
	}
	return event
}
