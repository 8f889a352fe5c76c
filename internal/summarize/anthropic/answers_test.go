package anthropic

import (
	"testing"

	"github.com/contextd/contextd/internal/summarize/modelhttp"
	"github.com/contextd/contextd/internal/summarize/modeltest/backendtest"
)

var answers = []backendtest.Answer{
	{Body: `{"type":"message","content":[{"type":"text","text":" a "}]}`, Text: "a"},
	{Body: `{"type":"message","content":[{"type":"thinking","thinking":"x"},{"type":"text","text":"a"},{"type":"text","text":"b"}],"stop_reason":"end_turn"}`, Text: "ab"},
	{
		Body: `{"type":"message","content":[{"type":"text","text":"a"}],"usage":{"input_tokens":1,"cache_creation_input_tokens":10,"cache_read_input_tokens":100,"output_tokens":2}}`,
		Text: "a", In: 111, Out: 2,
	},
	{Body: `{"type":"message","content":[{"type":"text","text":"a"}],"usage":{"cache_read_input_tokens":null,"input_tokens":"x"}}`, Text: "a"},
	{Body: `{"type":"message","content":[{"type":"text","text":"a"}],"stop_reason":"max_tokens"}`, Fails: "cut off", Permanent: true},
	{Body: `{"type":"message","content":[{"type":"text","text":"a"}],"stop_reason":"model_context_window_exceeded"}`, Fails: "cut off", Permanent: true},
	{Body: `{"type":"message","content":[],"stop_reason":"refusal"}`, Fails: "refused", Permanent: true},
	{Body: `{"type":"message","content":[{"type":"tool_use"}],"stop_reason":"tool_use"}`, Fails: "tool", Permanent: true},
	{Body: `{"type":"message","content":[],"stop_reason":"pause_turn"}`, Fails: "broke off"},
	{Body: `{"type":"message","content":[],"stop_reason":"end_turn"}`, Fails: "no text", Permanent: true},
	{Body: `{"type":"message","content":"a"}`, Fails: "no message"},
	{Body: `{"type":"error","error":{"type":"overloaded_error"}}`, Fails: "no message"},
	{Body: `{"type":"mess`, Fails: "not JSON"},
}

var failures = []backendtest.Failure{
	{Body: `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, Want: modelhttp.Failure{Code: "overloaded_error", Message: "Overloaded"}},
	{Body: `{"type":"error","error":{"type":"request_too_large","message":"m"}}`, Want: modelhttp.Failure{Code: "request_too_large", Message: "m", Permanent: true}},
	{Body: `{"type":"error","error":{"type":"billing_error"}}`, Want: modelhttp.Failure{Code: "billing_error", Spent: true}},
	{Body: `{"error":{"type":7,"message":"m"}}`, Want: modelhttp.Failure{Message: "m"}},
	{Body: `{"error":"m"}`, Want: modelhttp.Failure{}},
	{Body: `<html>`, Want: modelhttp.Failure{}},
}

var parsers = backendtest.Parsers{Answer: parseAnswer, Failure: parseFailure, Answers: answers, Failures: failures}

func TestParsing(t *testing.T) { backendtest.TestParsing(t, parsers) }

func FuzzParsing(f *testing.F) { backendtest.FuzzParsing(f, parsers) }
