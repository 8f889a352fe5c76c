package openhands

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/transcript"
)

// run is one line of an evaluation's output.
type run struct {
	InstanceID string           `json:"instance_id"`
	History    []jsontext.Value `json:"history"`
}

// event is an action or an observation of a run.
type event struct {
	ID          jsontext.Value `json:"id"`
	Timestamp   string         `json:"timestamp"`
	Source      string         `json:"source"`
	Action      string         `json:"action"`
	Observation string         `json:"observation"`
	Content     string         `json:"content"`
	Cause       jsontext.Value `json:"cause"`
	Args        jsontext.Value `json:"args"`
	Extras      *struct {
		Metadata jsontext.Value `json:"metadata"`
		Path     jsontext.Value `json:"path"`
	} `json:"extras"`
	ToolCall *toolCallMetadata `json:"tool_call_metadata"`
}

// toolCallMetadata says which of the model's calls an event belongs to. It repeats
// the whole reply on every event.
type toolCallMetadata struct {
	FunctionName string `json:"function_name"`
	ToolCallID   string `json:"tool_call_id"`
	Reply        *reply `json:"model_response"`
}

type reply struct {
	ID      string `json:"id"`
	Model   string `json:"model"`
	Choices []struct {
		Message struct {
			Content   jsontext.Value `json:"content"`
			Reasoning string         `json:"reasoning_content"`
			ToolCalls []struct {
				ID       string `json:"id"`
				Function struct {
					Name      string         `json:"name"`
					Arguments jsontext.Value `json:"arguments"`
				} `json:"function"`
			} `json:"tool_calls"`
		} `json:"message"`
	} `json:"choices"`
	Usage struct {
		Prompt     transcript.Count `json:"prompt_tokens"`
		Completion transcript.Count `json:"completion_tokens"`
		Details    *struct {
			Cached transcript.Count `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	} `json:"usage"`
}

func (r *reply) labels() map[string]string {
	u := transcript.Usage{Prompt: r.Usage.Prompt, Output: r.Usage.Completion}
	if r.Usage.Details != nil {
		u.CacheRead = r.Usage.Details.Cached
	}
	return u.Labels()
}

// filesChanged are the files that an observation says were changed.
func (e *event) filesChanged() []string {
	if e.Observation != "edit" && e.Observation != "write" || e.failed() || e.Extras == nil {
		return nil
	}
	path, _ := transcript.Text(e.Extras.Path)
	return []string{path}
}

// failed reports whether an observation says that its action went wrong.
func (e *event) failed() bool {
	if e.Observation == "error" {
		return true
	}
	if e.Observation == "edit" && len(e.Content) >= 6 && e.Content[:6] == "ERROR:" {
		return true
	}
	var m struct {
		ExitCode int `json:"exit_code"`
	}
	return e.Extras != nil && transcript.Decode(e.Extras.Metadata, &m) == nil && m.ExitCode != 0
}
