package atif

import (
	"cmp"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/content"
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// step is a message of a user, the system or the agent, and the observation after it.
type step struct {
	Timestamp   transcript.Word           `json:"timestamp"`
	Source      string                    `json:"source"`
	Model       transcript.Word           `json:"model_name"`
	Message     jsontext.Value            `json:"message"`
	Reasoning   transcript.Word           `json:"reasoning_content"`
	Calls       []call                    `json:"tool_calls"`
	Observation observation               `json:"observation"`
	Metrics     transcript.Maybe[metrics] `json:"metrics"`
}

type call struct {
	ID        transcript.Word `json:"tool_call_id"`
	Name      string          `json:"function_name"`
	Arguments jsontext.Value  `json:"arguments"`

	// In their place where the message is an object.
	ShortID   transcript.Word `json:"id"`
	ShortName transcript.Word `json:"name"`
}

type observation struct {
	Results []result `json:"results"`
}

type result struct {
	CallID  transcript.Word `json:"source_call_id"`
	Content jsontext.Value  `json:"content"`
	// Subagents names the trajectories of the subagents that produced the result.
	Subagents jsontext.Value `json:"subagent_trajectory_ref"`
	IsError   bool           `json:"is_error"`
	Extra     transcript.Maybe[struct {
		IsError bool `json:"is_error"`
	}] `json:"extra"`
}

type metrics struct {
	Prompt     transcript.Count `json:"prompt_tokens"`
	Completion transcript.Count `json:"completion_tokens"`
	Cached     transcript.Count `json:"cached_tokens"`
}

func (m metrics) labels() map[string]string {
	return transcript.Usage{Prompt: m.Prompt, CacheRead: m.Cached, Output: m.Completion}.Labels()
}

// unwrap takes the source, the time and the content from a message that is an object, as some programs write it.
func (s *step) unwrap() {
	var m struct {
		Role      string          `json:"role"`
		Content   jsontext.Value  `json:"content"`
		Timestamp transcript.Word `json:"timestamp"`
	}
	if s.Source != "" || len(s.Message) == 0 || s.Message[0] != '{' || transcript.Decode(s.Message, &m) != nil {
		return
	}
	s.Source, s.Message, s.Timestamp = m.Role, m.Content, cmp.Or(s.Timestamp, m.Timestamp)
	if s.Source == "assistant" {
		s.Source = "agent"
	}
	for i, c := range s.Calls {
		s.Calls[i].ID, s.Calls[i].Name = cmp.Or(c.ID, c.ShortID), cmp.Or(c.Name, string(c.ShortName))
	}
}

// reply returns the blocks of the model's reply: its thinking, its texts and its calls.
func (s *step) reply(said []eventlog.Block) (blocks []eventlog.Block) {
	if s.Reasoning != "" {
		blocks = append(blocks, eventlog.Thinking{Text: string(s.Reasoning)})
	}
	blocks = append(blocks, said...)
	for _, c := range s.Calls {
		arguments, _ := transcript.RawArguments(c.Arguments)
		blocks = append(blocks, eventlog.ToolCall{CallID: string(c.ID), Name: c.Name, Arguments: arguments})
	}
	return blocks
}

// answers reports whether results that name no call answer calls of this step.
func (s *step) answers() bool { return s.Source == "agent" && len(s.Calls) > 0 }

// unanswered returns empty results for the calls from index n on: a result that names no call answers them
// all.
func (s *step) unanswered(n int) (results []eventlog.Block) {
	for _, c := range s.Calls[min(n, len(s.Calls)):] {
		results = append(results, eventlog.ToolResult{CallID: string(c.ID)})
	}
	return results
}

func (r *result) failed() bool { return r.IsError || r.Extra.Value.IsError }

func (r *result) blocks() ([]eventlog.Block, error) {
	blocks, err := parts(r.Content)
	if len(blocks) == 0 && len(r.Subagents) > 0 && r.Subagents[0] != 'n' {
		blocks = []eventlog.Block{eventlog.Text{Text: transcript.Compact(r.Subagents)}}
	}
	return blocks, err
}

// parts reads a content: a text, or a list of texts and images, which are files next to the trajectory. Any
// other JSON is a tool's result, and becomes a text.
func parts(raw jsontext.Value) ([]eventlog.Block, error) {
	var list []struct {
		Type   string          `json:"type"`
		Text   transcript.Word `json:"text"`
		Source transcript.Maybe[struct {
			MIMEType string `json:"media_type"`
			Path     string `json:"path"`
		}] `json:"source"`
	}
	if len(raw) == 0 || raw[0] != '[' || transcript.Decode(raw, &list) != nil {
		return content.ResultContent(raw)
	}
	blocks := make([]eventlog.Block, 0, len(list))
	for _, p := range list {
		switch {
		case p.Type == "text":
			blocks = append(blocks, eventlog.Text{Text: string(p.Text)})
		case p.Type == "image" && p.Source.Value.Path != "":
			blocks = append(blocks, eventlog.Media{MIMEType: p.Source.Value.MIMEType, URI: p.Source.Value.Path})
		default:
			return []eventlog.Block{eventlog.Text{Text: transcript.Compact(raw)}}, nil
		}
	}
	return blocks, nil
}
