// Package atif reads trajectories in the Agent Trajectory Interchange Format, to which benchmarks convert the
// sessions of many agents. docs/harness/atif.md describes the format and the mapping.
package atif

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/converted"
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// Name of the harness.
const Name = "atif"

// labelAgent is the name of the agent that ran.
const labelAgent = Name + ".agent"

// Harness is for all programs that write trajectories in the format.
var Harness = transcript.Harness{Name: Name, Aliases: []string{"harbor"}, Detect: detect, Read: read}

// detect recognises a trajectory by the version of its format, or by its steps.
func detect(p transcript.Probe) bool {
	for _, record := range p.Records {
		if strings.HasPrefix(record["schema_version"], "ATIF-") {
			return true
		}
	}
	return p.Has("steps[].step_id", "steps[].source", "steps[].message") || p.Has("steps[].step_id", "steps[].message.role", "steps[].message.content")
}

type reader struct {
	out *transcript.Builder
	// runs counts the trajectories of the file; agents counts those of subagents inside them.
	runs, agents int
}

// read reads one or several trajectories.
func read(in io.Reader) (transcript.Transcript, error) {
	r := &reader{out: transcript.NewBuilder(Name, in)}
	doc := transcript.NewDocument(in, r.out.Warn)
	for {
		t := trajectory{}
		err := doc.Object("steps", t.field, t.step)
		if len(t.steps) > 0 {
			r.runs++
			suffix := ""
			if r.runs > 1 {
				suffix = strconv.Itoa(r.runs)
			}
			r.emit(&t, suffix)
		}
		if errors.Is(err, io.EOF) && len(t.steps) == 0 {
			err = nil
		} else if err == nil {
			continue
		}
		return r.out.Finish(doc.Settle(err))
	}
}

// trajectory is one run. Its steps are kept until its other members, which the session needs first, are
// known.
type trajectory struct {
	id    string
	agent agent
	steps []element
	subs  []jsontext.Value
	line  int
	other []string
}

type element struct {
	raw  jsontext.Value
	line int
}

type agent struct {
	Name    transcript.Word `json:"name"`
	Version transcript.Word `json:"version"`
	Model   transcript.Word `json:"model_name"`
	Tools   jsontext.Value  `json:"tool_definitions"`
	Extra   transcript.Maybe[struct {
		CWD transcript.Word `json:"cwd"`
	}] `json:"extra"`
}

func (t *trajectory) step(raw jsontext.Value, line int) {
	t.steps = append(t.steps, element{raw, line})
}

func (t *trajectory) field(name string, value jsontext.Value, line int) {
	switch name {
	case "session_id", "trajectory_id":
		id, _ := transcript.Text(value)
		t.id = cmp.Or(t.id, id)
	case "agent":
		var a transcript.Maybe[agent]
		if transcript.Decode(value, &a) == nil {
			t.agent = a.Value
		}
	case "subagent_trajectories":
		var list transcript.Maybe[[]jsontext.Value]
		if transcript.Decode(value, &list) == nil {
			t.subs, t.line = list.Value, line
		}
	case "schema_version":
	default:
		t.other = append(t.other, name)
	}
}

// emit makes a session of a trajectory, and one of each subagent's trajectory in it.
func (r *reader) emit(t *trajectory, suffix string) {
	run := &run{out: r.out, session: r.out.Session(suffix), model: string(t.agent.Model)}
	run.session.Label(transcript.LabelHarness, Name)
	run.session.Label(transcript.LabelSessionID, t.id)
	run.session.Label(transcript.LabelVersion, string(t.agent.Version))
	run.session.Label(transcript.LabelWorkingDirectory, string(t.agent.Extra.Value.CWD))
	run.session.Label(labelAgent, string(t.agent.Name))
	for _, name := range t.other {
		r.out.Skip("member " + name)
	}
	if len(t.agent.Tools) > 0 {
		run.session.Custom(transcript.Entry{ID: "tools", Native: t.agent.Tools}, "tools")
	}
	for i, s := range t.steps {
		run.step(transcript.Entry{Line: s.line, ID: "step-" + strconv.Itoa(i+1), Native: s.raw})
	}
	for _, raw := range t.subs {
		r.subagent(raw, t.line)
	}
}

// subagent reads a trajectory inside another.
func (r *reader) subagent(raw jsontext.Value, line int) {
	var members map[string]jsontext.Value
	var steps []jsontext.Value
	if transcript.Decode(raw, &members) != nil || transcript.Decode(members["steps"], &steps) != nil || len(steps) == 0 {
		r.out.Warn(line, "a subagent's trajectory without steps was not read")
		return
	}
	sub := trajectory{}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if name != "steps" {
			sub.field(name, members[name], line)
		}
	}
	for _, s := range steps {
		sub.step(s, line)
	}
	r.agents++
	r.emit(&sub, fmt.Sprintf("sidechain-%d", r.agents))
}

// run appends the steps of a trajectory to its session.
type run struct {
	out     *transcript.Builder
	session *transcript.SessionBuilder
	model   string
}

func (r *run) step(entry transcript.Entry) {
	var s step
	if err := transcript.Decode(entry.Native, &s); err != nil {
		r.session.Unreadable(entry, err)
		return
	}
	s.unwrap()
	entry.Time = transcript.ParseTime(string(s.Timestamp))
	blocks, err := parts(s.Message)
	if err != nil {
		r.session.Unreadable(entry, err)
		return
	}
	said := &eventlog.Message{Blocks: blocks}
	switch s.Source {
	case "system":
		said.Role = eventlog.RoleSystem
	case "user":
		said.Role = eventlog.RoleUser
		converted.Injected(&entry, blocks)
	case "agent":
		said.Role, said.Model = eventlog.RoleAssistant, cmp.Or(string(s.Model), r.model)
		said.Blocks = s.reply(blocks)
		entry.Labels = s.Metrics.Value.labels()
	default:
		r.out.Warn(entry.Line, "step of the unknown source %q; kept as a custom event", s.Source)
		r.session.Custom(entry, "unknown-source")
		return
	}
	message := entry
	message.Body = said
	if len(said.Blocks) > 0 || len(s.Observation.Results) == 0 {
		r.session.Append(message)
	}
	r.observe(entry, &s)
}

// observe appends an observation: results of calls, or else a message of the agent's environment.
func (r *run) observe(entry transcript.Entry, s *step) {
	id, answers := entry.ID, s.answers()
	for i, result := range s.Observation.Results {
		entry.ID, entry.Labels = fmt.Sprintf("%s/result-%d", id, i+1), nil
		blocks, err := result.blocks()
		switch {
		case err != nil:
			r.session.Unreadable(entry, err)
			continue
		case answers || result.CallID != "":
			answer := []eventlog.Block{eventlog.ToolResult{CallID: string(result.CallID), Content: blocks, IsError: result.failed()}}
			if result.CallID == "" && i+1 == len(s.Observation.Results) {
				answer = append(answer, s.unanswered(i+1)...)
			}
			entry.Body = &eventlog.Message{Role: eventlog.RoleTool, Blocks: answer}
		default:
			entry.Label(transcript.LabelInjected, "true")
			entry.Body = &eventlog.Message{Role: eventlog.RoleUser, Blocks: blocks}
		}
		r.session.Append(entry)
	}
}
