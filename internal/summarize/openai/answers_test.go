package openai

import "github.com/contextd/contextd/internal/summarize/modelhttp"

var answers = []parsed{
	{body: `{"choices":[{"message":{"content":" a "}}]}`, text: "a"},
	{body: `{"choices":[{"message":{"content":"a"},"finish_reason":null}],"usage":null}`, text: "a"},
	{body: `{"choices":[{"message":{"content":"a"},"finish_reason":"eos"}],"usage":{"prompt_tokens":3,"completion_tokens":2.0}}`, text: "a", in: 3, out: 2},
	{body: `{"choices":[{"message":{"content":"a"}}],"usage":{"prompt_tokens":"many"}}`, text: "a"},
	{body: `{"choices":[{"message":{"content":[{"type":"thinking","thinking":[]},{"type":"text","text":"a"},{"type":"text","text":"b"}]}}]}`, text: "ab"},
	{body: `{"choices":[{"message":{"content":"<think>x</think>a"}}],"error":null}`, text: "a"},
	{body: `{"choices":[{"message":{"content":"a"},"finish_reason":"length"}]}`, fails: "cut off", permanent: true},
	{body: `{"choices":[{"message":{"content":"a"},"finish_reason":"content_filter"}]}`, fails: "filter", permanent: true},
	{body: `{"choices":[{"message":{"content":null,"tool_calls":[{}]},"finish_reason":"tool_calls"}]}`, fails: "tool", permanent: true},
	{body: `{"choices":[{"message":{"content":"a"},"finish_reason":"abort"}]}`, fails: "broke off"},
	{body: `{"choices":[{"message":{"content":null,"refusal":"no"}}]}`, fails: "refused", permanent: true},
	{body: `{"choices":[{"message":{"content":"<think>x"}}]}`, fails: "no text", permanent: true},
	{body: `{"choices":[{"message":{"content":null}}]}`, fails: "no text", permanent: true},
	{body: `{"choices":[{"message":{"content":7}}]}`, fails: "no chat completion"},
	{body: `{"choices":[{"message":null}]}`, fails: "no message"},
	{body: `{"choices":{}}`, fails: "no chat completion"},
	{body: `{"error":{"code":"context_length_exceeded"}}`, fails: "holds an error", permanent: true},
	{body: `{"error":"model is loading"}`, fails: "holds an error"},
	{body: `{"choices":[]} x`, fails: "not JSON"},
}

var failures = []failed{
	{`{"error":{"message":"m","type":"t","code":"c"}}`, modelhttp.Failure{Code: "c", Message: "m"}},
	{`{"error":{"message":"m","type":"t","code":400}}`, modelhttp.Failure{Code: "t", Message: "m"}},
	{`{"error":{"message":"m","type":"t","code":null}}`, modelhttp.Failure{Code: "t", Message: "m"}},
	{`{"error":"m"}`, modelhttp.Failure{Message: "m"}},
	{`{"detail":"m"}`, modelhttp.Failure{Message: "m"}},
	{`{"detail":[{"loc":["body"],"input":"the prompt"}]}`, modelhttp.Failure{}},
	{`{"message":"m","type":"BadRequestError","code":400}`, modelhttp.Failure{Code: "BadRequestError", Message: "m"}},
	{`{"error":{"message":{},"type":["t"],"code":"c"}}`, modelhttp.Failure{Code: "c"}},
	{`{"error":{"code":"context_length_exceeded"}}`, modelhttp.Failure{Code: "context_length_exceeded", Permanent: true}},
	{`{"error":{"code":400,"type":"exceed_context_size_error"}}`, modelhttp.Failure{Code: "exceed_context_size_error", Permanent: true}},
	{`{"error":{"code":"insufficient_quota"}}`, modelhttp.Failure{Code: "insufficient_quota", Spent: true}},
	{`<html>`, modelhttp.Failure{}},
}
