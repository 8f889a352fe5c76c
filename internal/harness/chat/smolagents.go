package chat

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// smolStep has the members of a step of smolagents; each kind of step has others.
type smolStep struct {
	System jsontext.Value  `json:"system_prompt"`
	Task   transcript.Word `json:"task"`
	Plan   transcript.Word `json:"plan"`

	Number   jsontext.Value               `json:"step_number"`
	Said     jsontext.Value               `json:"model_output"`
	Calls    transcript.Maybe[[]toolCall] `json:"tool_calls"`
	Observed transcript.Word              `json:"observations"`
	Error    transcript.Maybe[struct {
		Message transcript.Word `json:"message"`
	}] `json:"error"`
	Timing transcript.Maybe[struct {
		Start jsontext.Value `json:"start_time"`
	}] `json:"timing"`
}

// smolIn recognises a list of such steps.
func smolIn(p transcript.Probe) bool {
	return p.Has("[].step_number", "[].model_output") || p.Has("[].step_number", "[].model_input_messages")
}

// messages returns the messages of which a step consists; none if it is no step.
func (s *smolStep) messages() (all []jsontext.Value) {
	say := func(role string, content any, more ...any) {
		all = append(all, transcript.Object(append([]any{"role", role, "content", content, "timestamp", orNull(s.Timing.Value.Start)}, more...)...))
	}
	switch {
	case len(s.Number) > 0:
	case s.Plan != "":
		say("assistant", string(s.Plan))
		return all
	case s.Task != "":
		say("user", string(s.Task))
		return all
	case len(s.System) > 0:
		say("system", s.System)
		return all
	default:
		return nil
	}
	var calls []jsontext.Value
	var ids []string
	for _, c := range s.Calls.Value {
		call, _ := c.call()
		if !eventlog.IsJSONObject(call.Arguments) {
			call.Arguments = transcript.Wrap("code", call.Arguments)
		}
		ids = append(ids, call.CallID)
		calls = append(calls, transcript.Object("id", call.CallID, "name", call.Name, "arguments", call.Arguments))
	}
	say("assistant", orNull(s.Said), "tool_calls", transcript.List(calls...))
	wrong := string(s.Error.Value.Message)
	observed := strings.Trim(string(s.Observed)+"\n"+wrong, "\n")
	switch {
	case len(ids) > 0:
		var status string
		if wrong != "" {
			status = "error"
		}
		say("tool", observed, "tool_call_ids", transcript.List(ids...), "status", status)
	case observed != "": // the model is shown what was wrong with its reply
		say("user", observed, "synthetic_reason", "step")
	}
	return all
}
