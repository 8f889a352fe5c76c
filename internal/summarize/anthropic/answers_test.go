package anthropic

import "github.com/contextd/contextd/internal/summarize/modelhttp"

var answers = []parsed{
	{body: `{"type":"message","content":[{"type":"text","text":" a "}]}`, text: "a"},
	{body: `{"type":"message","content":[{"type":"thinking","thinking":"x"},{"type":"text","text":"a"},{"type":"text","text":"b"}],"stop_reason":"end_turn"}`, text: "ab"},
	{
		body: `{"type":"message","content":[{"type":"text","text":"a"}],"usage":{"input_tokens":1,"cache_creation_input_tokens":10,"cache_read_input_tokens":100,"output_tokens":2}}`,
		text: "a", in: 111, out: 2,
	},
	{body: `{"type":"message","content":[{"type":"text","text":"a"}],"usage":{"cache_read_input_tokens":null,"input_tokens":"x"}}`, text: "a"},
	{body: `{"type":"message","content":[{"type":"text","text":"a"}],"stop_reason":"max_tokens"}`, fails: "cut off", permanent: true},
	{body: `{"type":"message","content":[{"type":"text","text":"a"}],"stop_reason":"model_context_window_exceeded"}`, fails: "cut off", permanent: true},
	{body: `{"type":"message","content":[],"stop_reason":"refusal"}`, fails: "refused", permanent: true},
	{body: `{"type":"message","content":[{"type":"tool_use"}],"stop_reason":"tool_use"}`, fails: "tool", permanent: true},
	{body: `{"type":"message","content":[],"stop_reason":"pause_turn"}`, fails: "broke off"},
	{body: `{"type":"message","content":[],"stop_reason":"end_turn"}`, fails: "no text", permanent: true},
	{body: `{"type":"message","content":"a"}`, fails: "no message"},
	{body: `{"type":"error","error":{"type":"overloaded_error"}}`, fails: "no message"},
	{body: `{"type":"mess`, fails: "not JSON"},
}

var failures = []failed{
	{`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, modelhttp.Failure{Code: "overloaded_error", Message: "Overloaded"}},
	{`{"type":"error","error":{"type":"request_too_large","message":"m"}}`, modelhttp.Failure{Code: "request_too_large", Message: "m", Permanent: true}},
	{`{"type":"error","error":{"type":"billing_error"}}`, modelhttp.Failure{Code: "billing_error", Spent: true}},
	{`{"error":{"type":7,"message":"m"}}`, modelhttp.Failure{Message: "m"}},
	{`{"error":"m"}`, modelhttp.Failure{}},
	{`<html>`, modelhttp.Failure{}},
}
