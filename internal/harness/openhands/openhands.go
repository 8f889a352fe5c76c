// Package openhands reads the outputs of OpenHands' evaluations: JSON Lines, one
// run a line. docs/harness/openhands.md describes the format and the mapping.
package openhands

import (
	"io"
	"strconv"

	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// Name of the harness.
const Name = "openhands"

// Harness is OpenHands.
var Harness = transcript.Harness{Name: Name, Detect: detect, Read: read}

// detect recognises a run by the events of its history.
func detect(p transcript.Probe) bool {
	return p.Has("history[].source", "history[].action") || p.Has("instance_id", "instruction", "test_result")
}

type reader struct {
	out  *transcript.Builder
	runs int
}

// conversation is one run.
type conversation struct {
	*reader
	session *transcript.SessionBuilder
	reply   string            // the newest reply of the model
	calls   map[string]string // call of an action without one of the model's, by the action's id
}

// read reads all runs of a file; each is a session.
func read(in io.Reader) (transcript.Transcript, error) {
	r := &reader{out: transcript.NewBuilder(Name, in)}
	return r.out.Finish(transcript.ReadLines(in, r.out.Warn, r.record))
}

func (r *reader) record(line transcript.Record) {
	var one run
	if err := transcript.Decode(line.JSON, &one); err != nil {
		r.out.Warn(line.Line, "part of the run has an unexpected shape and was not read: %v", err)
	}
	if len(one.History) == 0 {
		r.out.Warn(line.Line, "a run without a history was not read")
		return
	}
	r.runs++
	suffix := ""
	if r.runs > 1 {
		suffix = strconv.Itoa(r.runs)
	}
	c := &conversation{reader: r, session: r.out.Session(suffix), calls: map[string]string{}}
	c.session.Label(transcript.LabelHarness, Name)
	c.session.Label(transcript.LabelSessionID, one.InstanceID)
	for i, raw := range one.History {
		entry := transcript.Entry{Line: line.Line, ID: "event-" + strconv.Itoa(i+1), Native: raw}
		var e event
		err := transcript.Decode(raw, &e)
		if err == nil {
			entry.Time = transcript.ParseTime(e.Timestamp)
			err = c.event(entry, &e)
		}
		if err != nil {
			r.out.Warn(line.Line, "event %d has an unexpected shape, kept as a custom event: %v", i+1, err)
			c.session.Custom(entry, "unreadable")
		}
	}
}

func (c *conversation) event(entry transcript.Entry, e *event) error {
	switch {
	case e.Observation != "":
		c.observation(entry, e)
		return nil
	case e.ToolCall != nil && e.ToolCall.Reply != nil:
		return c.call(entry, e)
	}
	var args struct {
		Content string `json:"content"`
		Summary string `json:"summary"`
	}
	if len(e.Args) > 0 {
		if err := transcript.Decode(e.Args, &args); err != nil {
			return err
		}
	}
	switch e.Action {
	case "system":
		c.say(entry, eventlog.RoleSystem, args.Content)
	case "message":
		switch e.Source {
		case "user":
			c.say(entry, eventlog.RoleUser, args.Content)
		case "environment": // in the user's name
			entry.Labels = map[string]string{transcript.LabelInjected: "true"}
			c.say(entry, eventlog.RoleUser, args.Content)
		default:
			c.say(entry, eventlog.RoleAssistant, args.Content)
		}
	case "condensation":
		c.session.Boundary(entry, &eventlog.Compaction{Summary: args.Summary, NativeJSON: transcript.Compact(entry.Native)})
	case "recall", "change_agent_state", "null", "":
		c.session.Keep(entry, "action-"+e.Action)
	default:
		if e.Source != "agent" {
			c.session.Keep(entry, "action-"+e.Action)
			return nil
		}
		c.action(entry, e)
	}
	return nil
}

func (c *conversation) say(entry transcript.Entry, role eventlog.Role, text string) {
	entry.Body = &eventlog.Message{Role: role, Blocks: []eventlog.Block{eventlog.Text{Text: text}}}
	c.session.Append(entry)
}
