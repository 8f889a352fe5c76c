// Package chat reads lists of chat messages: in the forms of providers' APIs, and as benchmarks and many agents
// write them. docs/harness/chat.md describes the formats and the mapping.
package chat

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/transcript"
)

// Name of the harness.
const Name = "chat"

// The members of an object that may hold the list of messages.
const (
	inMessages = "messages"
	inTraj     = "traj"          // tau-bench
	inHistory  = "history"       // SWE-agent
	inContents = "contents"      // Google's requests
	inInput    = "input"         // OpenAI's items
	inOutput   = "output"        // OpenAI's items, after the others
	inClient   = "clientHistory" // Gemini CLI's checkpoints, beside a history for the user's eyes
	inGoose    = "conversation"  // Goose
	inShared   = "conversations" // data sets in the form of ShareGPT
)

// nested are members that list objects which hold messages themselves.
var nested = []string{"samples", "simulations"} // Inspect, tau2-bench

// states are members that hold a state of LangGraph, of which the messages are a part: as its server gives the state of
// a thread, and as LangSmith exports a run. inStates are the paths of these messages.
var (
	states   = []string{"values", "outputs"}
	inStates = []string{"values." + inMessages + "[].", "outputs." + inMessages + "[]."}
)

// trajectory is the member in which SWE-agent repeats its history. Each element is a step with the whole
// prompt, so that the member is too large to be read as one value.
const trajectory = "trajectory"

// Harness is for all programs that write lists of chat messages.
var Harness = transcript.Harness{
	Name: Name, Aliases: []string{"openai", "anthropic", "tau-bench", "tau2-bench", "mini-swe-agent", "swe-agent", "amp", "chatgpt", "continue", "crush", "droid", "goose", "grok", "kimi-cli", "smolagents"}, Detect: detect, Instead: shownByCline, Read: read,
}

// detect recognises a list of messages by their roles, or by the members that some programs write instead.
func detect(p transcript.Probe) bool {
	return p.Has("[].role", "[].content") || p.Has("[].role", "[].tool_calls") ||
		oneOf(p.Records) || foldedIn(p) || sharedIn(p) || chatGPTIn(p) || smolIn(p) || slices.ContainsFunc(p.Records, withoutRoles) ||
		p.Has("messages[].role") || p.Has("traj[].role") || p.Has("history[].role") ||
		p.Has(inGoose+"[].role", inGoose+"[].content") || slices.ContainsFunc(p.Records, wrapsMessages) ||
		p.Has("[].messages[].role") || p.Has("[].traj[].role") || p.Has("[].history[].role") ||
		p.Has("input[].role", "input[].content") || p.Has("[].input[].role", "[].input[].content") ||
		p.Has("samples[].messages[].role") || p.Has("simulations[].messages[].role") ||
		p.Has("eval.run_id", "eval.task") || p.Has("info.environment_info", "info.user_info", "tasks") || // the messages come long after them
		p.Has(trajectory+"[].action", trajectory+"[].observation", trajectory+"[].response") || // as the history does
		p.Is("trajectory_format", "mini-swe-agent-1", "mini-swe-agent-1.1")
}

// wrapsMessages reports whether a record is, or lists, messages with members around them, or lines of Grok CLI.
func wrapsMessages(record map[string]string) bool {
	_, said := record["content"]
	_, crush := record["[].parts"]
	return crush && record["[].session_id"] != "" && record["[].role"] != "" || wraps(record, "") || wraps(record, "[].") || wraps(record, inHistory+"[].") || said && grokRoles[record["type"]] != ""
}

// withoutRoles reports whether a record holds messages in Google's form, in LangChain's, or OpenAI's items.
func withoutRoles(record map[string]string) bool {
	for _, at := range []string{"", "[].", inContents + "[].", inHistory + "[].", inClient + "[].", "[]." + inContents + "[]."} {
		if recordInGoogle(record, at) {
			return true
		}
	}
	for _, at := range append([]string{"[].", inMessages + "[].", inInput + "[]."}, inStates...) {
		has := func(name string) bool { _, ok := record[at+name]; return ok }
		kind := record[at+"type"]
		said := has("content") || has("data.content") || has("kwargs.content")
		item := itemTypes[kind] || has("call_id") && (has("arguments") || has("output"))
		if item || said && (kind == "human" || kind == "ai" || has("additional_kwargs") || has("kwargs.content")) {
			return true
		}
	}
	return false
}

// sharedIn recognises messages in the form of ShareGPT, and others with roles that are where these may be.
func sharedIn(p transcript.Probe) bool {
	for _, at := range append([]string{inShared + "[].", "[]." + inShared + "[]."}, inStates...) {
		if p.Has(at+"from", at+"value") || p.Has(at+"role", at+"content") {
			return true
		}
	}
	return false
}

// roles are the roles that a message may have.
var roles = []string{"system", "developer", "user", "assistant", "model", "tool", "function"}

// oneOf reports whether one of the records, each a line, is a message. A role alone is not enough, because
// other programs' events have roles too.
func oneOf(records []map[string]string) bool {
	for _, r := range records {
		_, content := r["content"]
		_, calls := r["tool_calls"]
		if (content || calls) && (slices.Contains(roles, r["role"]) || strings.HasPrefix(r["role"], subagentRole)) {
			return true
		}
	}
	return false
}

type reader struct {
	out *transcript.Builder
	// loose is the conversation of messages that are not inside an object.
	loose *conversation
	// crush are the conversations of messages that name theirs, by its id.
	crush map[string]*conversation
	all   []*conversation
}

// read reads a file of messages: a list, one message a line, or lists inside one or several objects.
func read(in io.Reader) (transcript.Transcript, error) {
	r := &reader{out: transcript.NewBuilder(Name, in)}
	buffered := transcript.Ahead(in, 4096)
	start, err := buffered.Peek(4096)
	if err != nil && !errors.Is(err, io.EOF) {
		return transcript.Transcript{}, fmt.Errorf("read transcript: %w", err)
	}
	if oneALine(start) {
		err = transcript.ReadLines(buffered, r.out.Warn, func(l transcript.Record) { r.element(l.JSON, l.Line) })
	} else {
		err = r.document(transcript.NewDocument(buffered, r.out.Warn))
	}
	for _, c := range r.all {
		if c.thought.Len() > 0 {
			r.out.Warn(0, "thinking that no reply follows was not read")
		}
	}
	return r.out.Finish(err)
}

// oneALine reports whether the file begins with messages, of which the first may have a line about the session
// before it, rather than with a list or an object that holds messages.
func oneALine(start []byte) bool {
	return slices.ContainsFunc(transcript.NewProbe(start).Records, isMessage)
}

// document reads large values, one message at a time.
func (r *reader) document(doc *transcript.Document) error {
	return doc.Each(func(kind byte) (bool, error) {
		switch kind {
		case '[':
			return true, doc.Rest(r.element)
		case '{':
			return true, r.object(doc)
		}
		r.out.Warn(doc.Line(), "neither an object nor a list; not read")
		return true, nil
	})
}

// element reads a message, or an object that holds messages.
func (r *reader) element(raw jsontext.Value, line int) {
	var kind struct {
		Role     jsontext.Value `json:"role"`
		Type     jsontext.Value `json:"type"`
		Messages jsontext.Value `json:"messages"`
		Traj     jsontext.Value `json:"traj"`
		History  jsontext.Value `json:"history"`
		Contents jsontext.Value `json:"contents"`
		Input    jsontext.Value `json:"input"`
		Goose    jsontext.Value `json:"conversation"`
		Shared   jsontext.Value `json:"conversations"`
		Mapping  jsontext.Value `json:"mapping"`
		Parts    jsontext.Value `json:"parts"`
		crush
	}
	if raw[0] == '{' {
		if err := transcript.Decode(raw, &kind); err != nil {
			r.out.Warn(line, "not a message and not read: %v", err)
			return
		}
	}
	if len(kind.Role) == 0 && (len(kind.Messages)+len(kind.Traj)+len(kind.History)+len(kind.Contents)+len(kind.Goose)+len(kind.Shared)+len(kind.Mapping) > 0 || len(kind.Type) == 0 && len(kind.Input) > 0) {
		inner := transcript.NewDocument(bytes.NewReader(raw), r.out.Warn).StartingAt(line)
		_, err := inner.Open()
		if err == nil {
			err = r.object(inner)
		}
		if err != nil {
			r.out.Warn(line, "object with messages could not be read: %v", err)
		}
		return
	}
	if id := string(kind.SessionID); id != "" && len(kind.Parts) > 0 && kind.Parts[0] == '"' {
		if r.crush[id] == nil {
			if r.crush == nil {
				r.crush = map[string]*conversation{}
			}
			r.crush[id] = r.conversation()
			r.crush[id].session.Label(transcript.LabelHarness, Name)
			r.crush[id].session.Label(transcript.LabelSessionID, id)
		}
		r.crush[id].add(raw, line)
		return
	}
	if r.loose == nil {
		r.loose = r.conversation()
		r.loose.session.Label(transcript.LabelHarness, Name)
	}
	r.loose.add(raw, line)
}

// object reads an object that holds messages. The messages are kept until all other members are known,
// because members may come in any order.
func (r *reader) object(doc *transcript.Document) error {
	c := &container{each: r.element}
	var damage error
	for damage == nil && doc.More() {
		damage = c.member(doc)
	}
	if damage == nil {
		damage = doc.Close()
	}
	if len(c.tree.raw) > 0 && len(c.messages) == 0 {
		for _, m := range branch(c.tree.raw, c.node) {
			c.messages = append(c.messages, element{m, c.tree.line})
		}
	}
	switch {
	case len(c.messages) > 0:
		c.emit(r.conversation(), r.out)
	case c.nests:
		c.skip(r.out)
	case damage == nil:
		r.out.Warn(doc.Line(), "an object without messages was not read")
	}
	return damage
}

func (r *reader) conversation() *conversation {
	suffix := ""
	if n := len(r.all) + 1; n > 1 {
		suffix = strconv.Itoa(n)
	}
	c := &conversation{out: r.out, session: r.out.Session(suffix), suffix: suffix}
	r.all = append(r.all, c)
	return c
}
