package opencode

import (
	"strconv"
	"strings"
	"time"

	"github.com/contextd/contextd/internal/harness/transcript"
	"github.com/contextd/contextd/internal/harness/transcript/jsonvalue"
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
	// placed, if not nil, is told which message an event's content stands in.
	placed func(event, message string)
}

func (r *renderer) place(event, message string) {
	if r.placed != nil {
		r.placed(event, message)
	}
}

func (r *renderer) warning(format string, args ...any) {
	if r.warn != nil {
		r.warn(format, args...)
	}
}

func (r *renderer) messageID(e *eventlog.Event) string {
	if r.id != nil {
		return r.id(e)
	}
	return messageID(e.ID)
}

func member(name string, v jsonvalue.Value) jsonvalue.Member {
	return jsonvalue.Member{Name: name, Value: v}
}

func text(name, value string) jsonvalue.Member { return member(name, jsonvalue.String(value)) }

func number(name string, n int64) jsonvalue.Member {
	return member(name, jsonvalue.Raw(strconv.FormatInt(n, 10)))
}

func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// sessionInfo begins the file's info.
func sessionInfo(id, version, directory, parent string) jsonvalue.Value {
	v := jsonvalue.Object(text("id", id))
	v.SetString("version", version)
	v.SetString("directory", directory)
	v.SetString("parentID", parent)
	return v
}

// parts collects the parts of one message.
type parts struct {
	session, message string
	list             []jsonvalue.Value
}

func (p *parts) add(kind string, members ...jsonvalue.Member) *jsonvalue.Value {
	v := jsonvalue.Object(append([]jsonvalue.Member{
		text("id", partID(p.message, len(p.list)+1)), text("sessionID", p.session), text("messageID", p.message), text("type", kind),
	}, members...)...)
	p.list = append(p.list, v)
	return &p.list[len(p.list)-1]
}

// raw adds a part as it stood, at its place if it is known.
func (p *parts) raw(json string, at int) {
	v := jsonvalue.Raw(json)
	if at < 1 || at > len(p.list) {
		p.list = append(p.list, v)
		return
	}
	p.list = append(p.list[:at-1], append([]jsonvalue.Value{v}, p.list[at-1:]...)...)
}

// message makes the message of events that are one.
func (r *renderer) message(events []eventlog.Event, results map[string]result) jsonvalue.Value {
	p := &parts{session: r.session, message: r.messageID(&events[0])}
	role := eventlog.RoleUser
	var customs []eventlog.Event
	var info jsonvalue.Value
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
		info = r.assistant(p, events, results)
	} else {
		info = r.user(p, events)
	}
	for _, e := range customs {
		if c, ok := e.Body.(*eventlog.Custom); ok && strings.HasPrefix(c.Type, Name+".part-") {
			p.raw(c.JSON, partNumber(e.ID))
		}
	}
	return jsonvalue.Object(member("info", info), member("parts", jsonvalue.List(p.list...)))
}

// partNumber is the position in the id of a part that was kept as it stood.
func partNumber(event string) int {
	_, n, _ := strings.Cut(event, "/part-")
	i, err := strconv.Atoi(n)
	if err != nil {
		return 0
	}
	return i
}

// info begins a message's info. The harness orders messages by their times and, where
// these are equal, by their ids, so that what it is given must not go back in time.
func (r *renderer) info(message, role string, at time.Time) jsonvalue.Value {
	if r.complete {
		if at.Before(r.last) {
			at = r.last
		}
		r.last = at
	}
	return jsonvalue.Object(text("id", message), text("sessionID", r.session), text("role", role),
		member("time", jsonvalue.Object(number("created", millis(at)))))
}

func (r *renderer) user(p *parts, events []eventlog.Event) jsonvalue.Value {
	info := r.info(p.message, "user", events[0].Time)
	for i := range events {
		m, ok := events[i].Body.(*eventlog.Message)
		if !ok {
			continue
		}
		for _, block := range m.Blocks {
			switch b := block.(type) {
			case eventlog.Text:
				part := p.add("text", text("text", b.Text))
				if m.Role == eventlog.RoleSystem {
					part.Set("ignored", jsonvalue.Raw("true"))
					part.Set("metadata", jsonvalue.Object(member(systemMark, jsonvalue.Object(text("role", "system")))))
				} else if events[i].Labels[transcript.LabelInjected] == "true" {
					part.Set("synthetic", jsonvalue.Raw("true"))
				}
			case eventlog.ToolResult: // stands in the part of its call
			default:
				r.other(p, b)
			}
		}
	}
	if r.complete {
		r.requireUser(&info)
	}
	r.parent = p.message
	return info
}

// requireUser adds what the harness requires of a user's message.
func (r *renderer) requireUser(info *jsonvalue.Value) {
	info.Set("agent", jsonvalue.String("build"))
	info.Set("model", jsonvalue.Object(text("providerID", providerOf(r.model)), text("modelID", r.model)))
}

// request and reply make the two messages of a compaction.
func (r *renderer) request(e *eventlog.Event, c *eventlog.Compaction) jsonvalue.Value {
	id := r.messageID(e)
	info := r.info(id, "user", e.Time)
	if r.complete {
		r.requireUser(&info)
	}
	return jsonvalue.Object(member("info", info), member("parts", jsonvalue.List(jsonvalue.Raw(c.NativeJSON))))
}

func (r *renderer) reply(e *eventlog.Event, c *eventlog.Compaction) jsonvalue.Value {
	p := &parts{session: r.session, message: r.messageID(&eventlog.Event{ID: summaryID(e.ID), Time: e.Time})}
	s := eventlog.Event{ID: p.message, Time: e.Time, Labels: e.Labels, Body: &eventlog.Message{
		Role: eventlog.RoleAssistant, Blocks: []eventlog.Block{eventlog.Text{Text: c.Summary}},
	}}
	parent := r.parent
	r.parent = r.messageID(e)
	info := r.assistant(p, []eventlog.Event{s}, nil)
	r.parent = parent
	info.Set("mode", jsonvalue.String("compaction"))
	info.Set("agent", jsonvalue.String("compaction"))
	info.Set("summary", jsonvalue.Raw("true"))
	return jsonvalue.Object(member("info", info), member("parts", jsonvalue.List(p.list...)))
}
