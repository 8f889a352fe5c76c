package openai

import (
	"testing"

	"github.com/contextd/contextd/internal/summarize/modelhttp"
	"github.com/contextd/contextd/internal/summarize/modeltest/backendtest"
)

var answers = []backendtest.Answer{
	{Body: `{"choices":[{"message":{"content":" a "}}]}`, Text: "a"},
	{Body: `{"choices":[{"message":{"content":"a"},"finish_reason":null}],"usage":null}`, Text: "a"},
	{Body: `{"choices":[{"message":{"content":"a"},"finish_reason":"eos"}],"usage":{"prompt_tokens":3,"completion_tokens":2.0}}`, Text: "a", In: 3, Out: 2},
	{Body: `{"choices":[{"message":{"content":"a"}}],"usage":{"prompt_tokens":"many"}}`, Text: "a"},
	{Body: `{"choices":[{"message":{"content":[{"type":"thinking","thinking":[]},{"type":"text","text":"a"},{"type":"text","text":"b"}]}}]}`, Text: "ab"},
	{Body: `{"choices":[{"message":{"content":"<think>x</think>a"}}],"error":null}`, Text: "a"},
	{Body: `{"choices":[{"message":{"content":"a"},"finish_reason":"length"}]}`, Fails: "cut off", Permanent: true},
	{Body: `{"choices":[{"message":{"content":"a"},"finish_reason":"content_filter"}]}`, Fails: "filter", Permanent: true},
	{Body: `{"choices":[{"message":{"content":null,"tool_calls":[{}]},"finish_reason":"tool_calls"}]}`, Fails: "tool", Permanent: true},
	{Body: `{"choices":[{"message":{"content":"a"},"finish_reason":"abort"}]}`, Fails: "broke off"},
	{Body: `{"choices":[{"message":{"content":null,"refusal":"no"}}]}`, Fails: "refused", Permanent: true},
	{Body: `{"choices":[{"message":{"content":"<think>x"}}]}`, Fails: "no text", Permanent: true},
	{Body: `{"choices":[{"message":{"content":null}}]}`, Fails: "no text", Permanent: true},
	{Body: `{"choices":[{"message":{"content":7}}]}`, Fails: "no chat completion"},
	{Body: `{"choices":[{"message":null}]}`, Fails: "no message"},
	{Body: `{"choices":{}}`, Fails: "no chat completion"},
	{Body: `{"error":{"code":"context_length_exceeded"}}`, Fails: "holds an error", Permanent: true},
	{Body: `{"error":"model is loading"}`, Fails: "holds an error"},
	{Body: `{"choices":[]} x`, Fails: "not JSON"},
}

var failures = []backendtest.Failure{
	{Body: `{"error":{"message":"m","type":"t","code":"c"}}`, Want: modelhttp.Failure{Code: "c", Message: "m"}},
	{Body: `{"error":{"message":"m","type":"t","code":400}}`, Want: modelhttp.Failure{Code: "t", Message: "m"}},
	{Body: `{"error":{"message":"m","type":"t","code":null}}`, Want: modelhttp.Failure{Code: "t", Message: "m"}},
	{Body: `{"error":"m"}`, Want: modelhttp.Failure{Message: "m"}},
	{Body: `{"detail":"m"}`, Want: modelhttp.Failure{Message: "m"}},
	{Body: `{"detail":[{"loc":["body"],"input":"the prompt"}]}`, Want: modelhttp.Failure{}},
	{Body: `{"message":"m","type":"BadRequestError","code":400}`, Want: modelhttp.Failure{Code: "BadRequestError", Message: "m"}},
	{Body: `{"error":{"message":{},"type":["t"],"code":"c"}}`, Want: modelhttp.Failure{Code: "c"}},
	{Body: `{"error":{"code":"context_length_exceeded"}}`, Want: modelhttp.Failure{Code: "context_length_exceeded", Permanent: true}},
	{Body: `{"error":{"code":400,"type":"exceed_context_size_error"}}`, Want: modelhttp.Failure{Code: "exceed_context_size_error", Permanent: true}},
	{Body: `{"error":{"code":"insufficient_quota"}}`, Want: modelhttp.Failure{Code: "insufficient_quota", Spent: true}},
	{Body: `<html>`, Want: modelhttp.Failure{}},
}

var parsers = backendtest.Parsers{Answer: parseAnswer, Failure: parseFailure, Answers: answers, Failures: failures}

func TestParsing(t *testing.T) { backendtest.TestParsing(t, parsers) }

func FuzzParsing(f *testing.F) { backendtest.FuzzParsing(f, parsers) }
