// The SDKs themselves take what a context gives, and what they give back goes into the log:
// their HTTP goes to a function here, and what they wrote is compared with the daemon's bytes.
import assert from "node:assert/strict";
import { test } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import type { MessageCreateParamsNonStreaming } from "@anthropic-ai/sdk/resources/messages";
import { GenerateContentResponse } from "@google/genai";
import OpenAI from "openai";
import type { Response as OpenAIResponse } from "openai/resources/responses/responses";
import * as claude from "../src/anthropic/index.js";
import * as google from "../src/gemini/index.js";
import { assistant, type EventInit, type MessageFormat, system, text, toolCall, toolResult, user } from "../src/index.js";
import { chatEvents, openaiChat, openaiResponses, responsesEvents, responsesUsage } from "../src/openai/index.js";
import { opening, tight, turn } from "./conversation.js";
import { daemon, noDaemon } from "./daemon.js";

const d = daemon();

/** Answers every request alike, and keeps the newest body. */
function wire(answer: object) {
  const seen = { body: "" };
  const fetch = async (_url: unknown, init?: { body?: unknown }): Promise<Response> => {
    const body = init?.body;
    seen.body = typeof body === "string" ? body : new TextDecoder().decode(body as Uint8Array);
    return Response.json(answer);
  };
  return { seen, fetch };
}

const said = {
  id: "msg_1",
  type: "message",
  role: "assistant",
  model: "claude-test",
  content: [
    { type: "thinking", thinking: "Which file?", signature: "c2lnbmVk" },
    { type: "redacted_thinking", data: "c2VhbGVk" },
    { type: "text", text: "I look.", citations: null },
    { type: "tool_use", id: "toolu_x", name: "read_file", input: { path: "main.go" } },
  ],
  stop_reason: "tool_use",
  stop_sequence: null,
  usage: { input_tokens: 10, cache_read_input_tokens: 5, cache_creation_input_tokens: 7, output_tokens: 3 },
};

test("Anthropic's SDK sends the context, and its answer comes back as it was", { skip: noDaemon }, async () => {
  const session = d.client.session("sdk/anthropic");
  await session.append(opening);
  const { seen, fetch } = wire(said);
  const sdk = new Anthropic({ apiKey: "none", fetch: fetch as typeof globalThis.fetch, maxRetries: 0 });
  const context = await session.assemble(claude.anthropic, { budget: tight });
  const params: MessageCreateParamsNonStreaming = { model: said.model, max_tokens: 100, ...context.requestParams() };
  const answer = await sdk.messages.create(params);
  const sent = JSON.parse(seen.body) as Record<string, unknown>;
  assert.deepEqual(sent["messages"], context.requestParams().messages);
  assert.deepEqual(context.system, [{ type: "text", text: "You repair builds." }]);
  assert.deepEqual(sent["system"], [
    { type: "text", text: "You repair builds.", cache_control: { type: "ephemeral" } },
  ]);
  assert.ok(!JSON.stringify(context.messages()).includes("cache_control"));

  await session.append(claude.events(answer));
  await session.append(claude.events(answer)); // again: a duplicate, not a second event
  await session.append(toolResult("toolu_x", "package main"));
  await session.recordModelCall(context, claude.usage(answer));
  const next = await session.assemble(claude.anthropic, { budget: tight });
  const { citations: _, ...plain } = said.content[2]! as { citations: null };
  assert.deepEqual(next.messages().slice(-2), [
    { role: "assistant", content: [said.content[0], said.content[1], plain, said.content[3]] },
    { role: "user", content: [{ type: "tool_result", tool_use_id: "toolu_x", content: [{ type: "text", text: "package main" }] }] },
  ]);
  assert.equal((await session.get()).headSeq, 4n);
});

const empty: Record<string, () => EventInit[]> = {
  anthropic: () => claude.events({ ...said, content: [] } as never),
  "OpenAI's chat": () => chatEvents({ id: "msg_1", model: "claude-test", choices: [{ message: { role: "assistant", content: null } }] } as never),
  "OpenAI's responses": () => responsesEvents({ id: "msg_1", model: "claude-test", output: [] } as never),
  gemini: () => google.events(Object.assign(new GenerateContentResponse(), { responseId: "msg_1", modelVersion: "claude-test", promptFeedback: {} })),
};

for (const [api, answer] of Object.entries(empty)) {
  test(`an answer of ${api} that says nothing is no message`, { skip: noDaemon }, async () => {
    const session = d.client.session(`sdk/empty/${api.replace(/\W+/g, "-")}`);
    await session.append(user("Go."));
    await session.append(answer());
    await session.append(answer()); // again: a duplicate
    const kinds = [];
    for await (const { eventId, kind } of session.events()) kinds.push(kind.case === "custom" ? [eventId, kind.value.type, new TextDecoder().decode(kind.value.json)] : kind.case);
    assert.deepEqual(kinds, ["message", ["msg_1", "empty_response", '{"id":"msg_1","model":"claude-test"}']]);
  });
}

test("calls of OpenAI's tools that the runtime runs are calls", () => {
  const output = [
    { type: "shell_call", call_id: "c1", action: { commands: ["ls"] }, environment: { type: "local" } },
    { type: "apply_patch_call", call_id: "c2", operation: { type: "delete_file", path: "a" } },
    { type: "computer_call", call_id: "c3", actions: [{ type: "wait" }] },
    { type: "local_shell_call", call_id: "c4", action: { type: "exec" } },
    { type: "shell_call", call_id: "c5", action: { commands: ["ls"] }, environment: { type: "container_reference" } },
  ];
  const [event] = responsesEvents({ id: "r", model: "gpt-5", output } as never);
  const message = event!.kind!.value as { blocks: { kind: { case: string; value: { callId: string; name: string; argumentsJson: Uint8Array } } }[] };
  const calls = message.blocks.slice(0, 4).map(({ kind: { value } }) => [value.callId, value.name, new TextDecoder().decode(value.argumentsJson)]);
  assert.deepEqual(calls, [
    ["c1", "shell", '{"commands":["ls"]}'],
    ["c2", "apply_patch", '{"type":"delete_file","path":"a"}'],
    ["c3", "computer", '{"actions":[{"type":"wait"}]}'],
    ["c4", "local_shell", '{"type":"exec"}'],
  ]);
  assert.equal(message.blocks[4]!.kind.case, "provider");
});

test("a prompt is what was sent, with what was written to the cache", () => {
  const first = { type: "message", input_tokens: 10, cache_read_input_tokens: 100, cache_creation_input_tokens: 5 };
  const usage = { input_tokens: 30, cache_read_input_tokens: 215, cache_creation_input_tokens: 5, output_tokens: 9, iterations: [first, { ...first, input_tokens: 20 }] };
  const { inputTokens, cacheReadTokens, outputTokens } = claude.usage({ ...said, usage } as never);
  assert.deepEqual([inputTokens, cacheReadTokens, outputTokens], [115, 100, 9]);
  const counted = { input_tokens: 9, output_tokens: 1, input_tokens_details: { cached_tokens: 0, cache_write_tokens: 7 } };
  assert.equal(responsesUsage({ id: "r", model: "gpt-6", output: [], usage: counted } as never).cacheWriteTokens, 7);
});

const answers: Record<string, [RegExp, (response: never) => unknown]> = {
  "Anthropic's Messages": [/^the response is none of Anthropic's Messages: /, claude.events],
  "OpenAI's Chat Completions": [/^the response is none of OpenAI's Chat Completions: /, chatEvents],
  "OpenAI's Responses": [/^the response is none of OpenAI's Responses: /, responsesEvents],
};

for (const [api, [message, read]] of Object.entries(answers)) {
  test(`what is no response of ${api} is a TypeError`, () => {
    for (const response of [undefined, "hi", { foo: 1 }]) assert.throws(() => read(response as never), { name: "TypeError", message });
  });
}

test("malformed arguments are kept, and the model sees them again", { skip: noDaemon }, async () => {
  const session = d.client.session("sdk/malformed");
  await session.append(user("Go."));
  const written = ['{"path": "a', "plain words", "[1, 2]", '{"a": NaN}', "\ufeff{}", " ", ""];
  for (const [n, args] of written.entries()) {
    const id = `call_${n}`;
    const call = { id, type: "function" as const, function: { name: "read", arguments: args } };
    const message = { role: "assistant" as const, content: null, refusal: null, tool_calls: [call] };
    const choices = [{ index: 0, finish_reason: "tool_calls" as const, logprobs: null, message }];
    await session.append(chatEvents({ id: `c${n}`, object: "chat.completion", created: 0, model: "gpt-5", choices }));
    await session.append(toolResult(id, "no JSON", { isError: true }));
  }
  const chat = (await session.assemble(openaiChat)).messages();
  const shown = chat.flatMap((m) => ("tool_calls" in m && m.tool_calls ? m.tool_calls : []));
  assert.deepEqual(
    shown.map((c) => (c.type === "function" ? c.function.arguments : "")),
    written.map((args) => args || "{}"),
  );
  const turns = (await session.assemble(claude.anthropic)).messages();
  const inputs = turns.flatMap((m) => (typeof m.content === "string" ? [] : m.content)).flatMap((b) => (b.type === "tool_use" ? [b.input] : []));
  assert.deepEqual(inputs, written.map((args) => (args === "" ? {} : { raw_arguments: args })));
});

test("a body has the bytes of odd arguments, also through the SDK", { skip: noDaemon }, async () => {
  const odd = '{"n":1.0,"big":9223372036854775808,"huge":1e300,"2":1,"1":2,"dup":1,"dup":2}';
  const session = d.client.session("sdk/odd");
  await session.append([user("go"), assistant([toolCall("c1", "f", odd)]), toolResult("c1", "ok")]);
  const context = await session.assemble(claude.anthropic, { budget: tight });
  assert.deepEqual(context.inexact(), [1]);
  const { seen, fetch } = wire(said);
  const sdk = new Anthropic({ apiKey: "none", fetch: fetch as typeof globalThis.fetch, maxRetries: 0 });
  const body = context.requestBody({ model: "claude-sonnet-4-5", max_tokens: 100, tools: undefined });
  await sdk.post("/v1/messages", { body, headers: { "content-type": "application/json" } });
  assert.ok(seen.body.includes(`"input":${odd}`), seen.body);
  assert.ok(seen.body.includes('"cache_control":{"type":"ephemeral"}'));
  const { model, max_tokens, ...rest } = JSON.parse(seen.body) as Record<string, unknown>;
  assert.equal(model, "claude-sonnet-4-5");
  assert.equal(max_tokens, 100);
  assert.deepEqual(rest, context.requestParams());
  const asText: MessageFormat<unknown, unknown, unknown>[] = [openaiChat, openaiResponses];
  for (const format of asText) {
    const chat = await session.assemble(format, { budget: tight });
    assert.ok(new TextDecoder().decode(chat.requestBody()).includes(JSON.stringify(odd)), "as the string it was");
    const calls = JSON.parse(new TextDecoder().decode(chat.requestBody())) as { prompt_cache_key: string };
    assert.equal(calls.prompt_cache_key, chat.header.promptCacheKey);
    assert.notEqual(calls.prompt_cache_key, "");
  }
});

test("OpenAI's SDK sends a chat, and its answer comes back as it was", { skip: noDaemon }, async () => {
  const session = d.client.session("sdk/chat");
  await session.append([...opening, ...turn(0)]);
  const message = {
    role: "assistant",
    content: "Again.",
    refusal: null,
    tool_calls: [{ id: "call_9", type: "function", function: { name: "read_file", arguments: '{"from": 1.0}' } }],
  };
  const { seen, fetch } = wire({ id: "chatcmpl-1", object: "chat.completion", model: "gpt-5", created: 1, choices: [{ index: 0, finish_reason: "tool_calls", message }] });
  const sdk = new OpenAI({ apiKey: "none", fetch: fetch as typeof globalThis.fetch, maxRetries: 0 });
  const context = await session.assemble(openaiChat, { budget: tight });
  const answer = await sdk.chat.completions.create({ model: "gpt-5", ...context.requestParams() });
  const sent = JSON.parse(seen.body) as { messages: unknown; prompt_cache_key: string };
  assert.deepEqual(sent.messages, context.messages());
  assert.equal(sent.prompt_cache_key, context.header.promptCacheKey);
  await session.append([...chatEvents(answer), toolResult("call_9", "ok")]);
  const next = await session.assemble(openaiChat, { budget: tight });
  const { refusal: _, ...plain } = message;
  assert.deepEqual(next.messages().at(-2), plain);
});

test("OpenAI's SDK sends a response's input, and reasoning comes back sealed", { skip: noDaemon }, async () => {
  const session = d.client.session("sdk/responses");
  await session.append(opening);
  const reasoning = { type: "reasoning", id: "rs_1", summary: [{ type: "summary_text", text: "Hm." }], encrypted_content: "c2VhbA==" };
  const call = { type: "function_call", id: "fc_1", call_id: "call_1", name: "read_file", arguments: '{"from": 1.0}', status: "completed" };
  const response = { id: "resp_1", object: "response", model: "gpt-5", status: "completed", output: [reasoning, call], usage: { input_tokens: 50, input_tokens_details: { cached_tokens: 20 }, output_tokens: 7 } };
  const { seen, fetch } = wire(response);
  const sdk = new OpenAI({ apiKey: "none", fetch: fetch as typeof globalThis.fetch, maxRetries: 0 });
  const context = await session.assemble(openaiResponses, { budget: tight });
  const answer: OpenAIResponse = await sdk.responses.create({ model: "gpt-5", store: false, ...context.requestParams() });
  assert.deepEqual((JSON.parse(seen.body) as { input: unknown }).input, context.messages());
  await session.append([...responsesEvents(answer), toolResult("call_1", "ok")]);
  await session.recordModelCall(context, responsesUsage(answer));
  const next = await session.assemble(openaiResponses, { budget: tight });
  const { id: _, status: __, ...plain } = call;
  assert.deepEqual(next.messages().slice(-3), [
    reasoning,
    plain,
    { type: "function_call_output", call_id: "call_1", output: "ok" },
  ]);
});

test("Gemini's answer comes back with its signatures", { skip: noDaemon }, async () => {
  const session = d.client.session("sdk/gemini");
  await session.append([system("You repair builds."), user([text("go")])]);
  const answer = new GenerateContentResponse();
  answer.responseId = "r1";
  answer.modelVersion = "gemini-3-pro";
  const functionCall = { name: "read_file", args: { path: "a" } };
  answer.candidates = [{ content: { role: "model", parts: [{ text: "I look." }, { functionCall, thoughtSignature: "c2lnbmVk" }] } }];
  await session.append(google.events(answer));
  await session.append(toolResult(google.callIds(answer)[0]!, "ok"));
  const context = await session.assemble(google.gemini, { budget: tight });
  const { contents, config } = context.requestParams();
  assert.deepEqual(config, { systemInstruction: { parts: [{ text: "You repair builds." }] } });
  const part = contents.at(-2)!.parts!.at(-1)!;
  assert.equal(part.thoughtSignature, "c2lnbmVk");
  assert.deepEqual(part.functionCall?.args, functionCall.args);
  assert.equal(contents.at(-1)!.parts![0]!.functionResponse?.id, part.functionCall?.id);
});
