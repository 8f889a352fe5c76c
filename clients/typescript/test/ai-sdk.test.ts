import assert from "node:assert/strict";
import { test } from "node:test";
import type { LanguageModelV3GenerateResult, LanguageModelV3Prompt, LanguageModelV3StreamPart } from "@ai-sdk/provider";
import { generateText, type ModelMessage, stepCountIs, streamText, tool, wrapLanguageModel } from "ai-6";
import { convertArrayToReadableStream, MockLanguageModelV3 } from "ai-6/test";
import { z } from "zod";
import { contextdMiddleware, type MiddlewareOptions, PromptDivergedError } from "../src/ai-sdk/index.js";
import { toPrompt } from "../src/ai-sdk/to-prompt.js";
import { toEvent } from "../src/ai-sdk/to-events.js";
import { Client, own, text } from "../src/index.js";
import { policy, tight } from "./conversation.js";
import { daemon, noDaemon } from "./daemon.js";

const d = daemon();

const usage = {
  inputTokens: { total: 900, noCache: 900, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 5, text: 5, reasoning: 0 },
};

/** A model that calls a tool so many times, and then answers. */
function model(calls: number, idOf = (i: number) => `call-${i}`): MockLanguageModelV3 {
  let n = 0;
  return new MockLanguageModelV3({
    modelId: "claude-sonnet-4-5",
    doGenerate: async (): Promise<LanguageModelV3GenerateResult> => {
      const i = n++;
      const content: LanguageModelV3GenerateResult["content"] =
        i < calls
          ? [
              { type: "reasoning", text: `thought ${i}`, providerMetadata: { anthropic: { signature: `sig-${i}` } } },
              { type: "text", text: `Step ${i}.` },
              { type: "tool-call", toolCallId: idOf(i), toolName: "read", input: JSON.stringify({ path: `file${i}.go` }) },
            ]
          : [{ type: "text", text: "Done." }];
      const unified = i < calls ? "tool-calls" : "stop";
      return { content, finishReason: { unified, raw: unified }, usage, warnings: [] };
    },
  });
}

const tools = {
  read: tool({
    inputSchema: z.object({ path: z.string() }),
    execute: async ({ path }: { path: string }) =>
      Array.from({ length: 40 }, (_, i) => `${path}:${i} func step${i * 7}() error { return nil }`).join("\n"),
  }),
};

const wrapped = (mock: MockLanguageModelV3, options: MiddlewareOptions) =>
  wrapLanguageModel({ model: mock, middleware: contextdMiddleware(options) });

const size = (prompt: LanguageModelV3Prompt) => JSON.stringify(prompt).length;

test("the list in which OpenRouter seals reasoning is its seal, and stays with it", () => {
  const of = (details: Record<string, string>[]): LanguageModelV3Prompt[number] => ({
    role: "assistant",
    content: [{ type: "reasoning", text: "hm", providerOptions: { openrouter: { reasoning_details: details } } }],
  });
  const block = (m: LanguageModelV3Prompt[number]) => {
    const { kind } = toEvent(m, "m");
    assert.equal(kind?.case, "message");
    return kind?.case === "message" ? kind.value.blocks![0]!.kind : undefined;
  };
  const sealed = [{ type: "reasoning.text", text: "hm" }, { type: "reasoning.encrypted", data: "ZA==" }];
  assert.deepEqual(block(of(sealed)), {
    case: "thinking",
    value: { text: "hm", signature: JSON.stringify({ reasoning_details: sealed }), encryptedContent: "" },
  });
  assert.deepEqual(block(of([sealed[0]!])), { case: "thinking", value: { text: "hm", signature: "", encryptedContent: "" } });
});

test("an agent's prompts are the session's context", { skip: noDaemon }, async () => {
  const session = d.client.session("ai/agent");
  const mock = model(24);
  const errors: unknown[] = [];
  const result = await generateText({
    model: wrapped(mock, { session, budget: tight, policy, onRecordError: (e) => errors.push(e) }),
    system: "You repair builds.",
    prompt: "Why does make fail?",
    tools,
    stopWhen: stepCountIs(30),
  });
  assert.equal(result.text, "Done.");
  assert.equal(result.steps.length, 25);
  assert.deepEqual(errors, []);

  const prompts = mock.doGenerateCalls.map((c) => c.prompt);
  // The first is what the SDK made of the parameters, as no reducer had anything to do.
  assert.deepEqual(prompts[1]!.map(({ role }) => role), ["system", "user", "assistant", "tool"]);
  assert.deepEqual(prompts[1]![2], {
    role: "assistant",
    content: [
      { type: "reasoning", text: "thought 0", providerOptions: { anthropic: { signature: "sig-0" } } },
      { type: "text", text: "Step 0." },
      { type: "tool-call", toolCallId: "call-0", toolName: "read", input: { path: "file0.go" } },
    ],
  });
  // Later ones are cut, and every result has its call.
  const last = prompts.at(-1)!;
  assert.ok(size(last) < 40_000 && size(last) < 24 * 1800, `${size(last)} characters`);
  for (const prompt of prompts) {
    const calls = prompt.flatMap((m) => (m.role === "assistant" ? m.content : [])).flatMap((p) => (p.type === "tool-call" ? p.toolCallId : []));
    const results = prompt.flatMap((m) => (m.role === "tool" ? m.content : [])).flatMap((p) => (p.type === "tool-result" ? p.toolCallId : []));
    assert.deepEqual(results, calls);
    assert.equal(prompt[0]!.role, "system");
    assert.deepEqual(prompt.find((m) => m.role === "user")?.content, [{ type: "text", text: "Why does make fail?" }]);
  }
  // The log has everything, once: 2 + 24 * (call + result). The answer comes with the next prompt.
  assert.equal((await session.get()).headSeq, 50n);
  const context = await session.assemble(own, { budget: tight, policy, preview: true });
  assert.ok(context.header.budget!.projectedTokens < context.header.budget!.rawTokens / 2n);
  // What the provider counted was taken down for each call.
  const { call } = await d.client.stub.explainCall({ sessionId: session.id });
  assert.equal(call?.number, 25);
  assert.equal(call?.inputTokens, 900n);
  assert.equal(call?.stopReason, "stop");
});

test("ids with Google's signature come back, and the log has the signatures apart", { skip: noDaemon }, async () => {
  const session = d.client.session("ai/signed");
  const ids = (i: number) => `call-${i}__thought__c2ln${i}+/=`;
  const mock = model(24, ids);
  await generateText({
    model: wrapped(mock, { session, budget: tight, policy }),
    prompt: "Why does make fail?",
    tools,
    stopWhen: stepCountIs(30),
  });
  const last = mock.doGenerateCalls.at(-1)!.prompt;
  const calls = last.flatMap((m) => (m.role === "assistant" ? m.content : [])).flatMap((p) => (p.type === "tool-call" ? p.toolCallId : []));
  const results = last.flatMap((m) => (m.role === "tool" ? m.content : [])).flatMap((p) => (p.type === "tool-result" ? p.toolCallId : []));
  assert.ok(calls.length > 1);
  assert.deepEqual(calls, Array.from({ length: 24 }, (_, i) => ids(i)).slice(-calls.length));
  assert.deepEqual(results, calls);
  for await (const { kind } of session.events()) {
    const blocks = kind.case === "message" ? kind.value.blocks : [];
    const at = blocks.findIndex((b) => b.kind.case === "toolCall");
    if (at < 0) continue;
    const [before, call] = [blocks[at - 1]!.kind, blocks[at]!.kind];
    assert.ok(before.case === "provider" && call.case === "toolCall");
    const n = call.value.callId.slice("call-".length);
    const fields = { provider_specific_fields: { thought_signature: `c2ln${n}+/=` } };
    assert.deepEqual([before.value.provider, JSON.parse(new TextDecoder().decode(before.value.json))], ["openai", fields]);
  }
});

test("a conversation goes on in another process, and nothing is appended twice", { skip: noDaemon }, async () => {
  const messages: ModelMessage[] = [{ role: "user", content: "one" }];
  for (let n = 0; n < 3; n++) {
    const session = d.client.session("ai/resumed"); // and a middleware that knows nothing yet
    const { response } = await generateText({ model: wrapped(model(1), { session }), system: "s", messages, tools, stopWhen: stepCountIs(3) });
    messages.push(...response.messages, { role: "user", content: `and ${n}?` });
  }
  const session = d.client.session("ai/resumed");
  // System, and of each round the user's message, a call, a result and (but for the last) an answer.
  assert.equal((await session.get()).headSeq, 1n + 3n * 3n + 2n);
});

test("a prompt that is not what the log holds is refused", { skip: noDaemon }, async () => {
  const session = d.client.session("ai/diverged");
  const wrappedModel = wrapped(model(0), { session });
  await generateText({ model: wrappedModel, system: "s", prompt: "one" });
  await assert.rejects(
    generateText({ model: wrappedModel, system: "s", prompt: "another" }),
    (err) => err instanceof PromptDivergedError && err.index === 1 && err.sessionId === "ai/diverged" && /^message 1 \(user\) .* injections/.test(err.message),
  );
  // So is it by a middleware that has only the log to go by.
  await assert.rejects(
    generateText({ model: wrapped(model(0), { session }), system: "other", prompt: "one" }),
    (err) => err instanceof PromptDivergedError && err.index === 0,
  );
  assert.equal((await session.get()).headSeq, 2n);
});

test("a run that is aborted ends with the signal's reason, as without the middleware", { skip: noDaemon }, async () => {
  const session = d.client.session("ai/aborted");
  const reason = new Error("enough");
  const aborted = generateText({ model: wrapped(model(0), { session }), prompt: "hi", abortSignal: AbortSignal.abort(reason), maxRetries: 0 });
  await assert.rejects(aborted, (err) => err === reason);
});

test("a stream is recorded, with injections and marks of the cache", { skip: noDaemon }, async () => {
  const session = d.client.session("ai/stream");
  const chunks: LanguageModelV3StreamPart[] = [
    { type: "stream-start", warnings: [] },
    { type: "text-start", id: "1" },
    { type: "text-delta", id: "1", delta: "Hello." },
    { type: "text-end", id: "1" },
    { type: "finish", finishReason: { unified: "stop", raw: "end_turn" }, usage },
  ];
  const mock = new MockLanguageModelV3({ doStream: async () => ({ stream: convertArrayToReadableStream(chunks) }) });
  const injections = () => [{ name: "now", blocks: [text("It is noon.")] }];
  const options = { session, injections, anthropicCache: true, budget: { maxTokens: 4000, injectionReserve: 100 } };
  const result = streamText({ model: wrapped(mock, options), system: "s", prompt: "hi" });
  assert.equal(await result.text, "Hello.");
  const marks = { anthropic: { cacheControl: { type: "ephemeral" } } };
  assert.deepEqual(mock.doStreamCalls[0]!.prompt, [
    { role: "system", content: "s", providerOptions: marks },
    { role: "user", content: [{ type: "text", text: "hi" }], providerOptions: marks },
    { role: "user", content: [{ type: "text", text: "It is noon." }] },
  ]);
  const { call } = await d.client.stub.explainCall({ sessionId: session.id });
  assert.equal(call?.stopReason, "end_turn");
});

test("parts come back from the log as they went in", { skip: noDaemon }, async () => {
  const options = { openai: { itemId: "msg_1" } };
  const prompt: LanguageModelV3Prompt = [
    { role: "system", content: "s" },
    {
      role: "user",
      content: [
        { type: "text", text: "see" },
        { type: "file", mediaType: "image/png", data: "iVBORw0KGgo=", filename: "a.png" },
        { type: "file", mediaType: "application/pdf", data: new URL("https://example.com/a.pdf") },
      ],
    },
    {
      role: "assistant",
      content: [
        { type: "reasoning", text: "", providerOptions: { openai: { itemId: "rs_1", reasoningEncryptedContent: "c2VhbA==" } } },
        { type: "reasoning", text: "", providerOptions: { anthropic: { redactedData: "c2VhbGVk" } } },
        { type: "text", text: "both", providerOptions: options },
        { type: "tool-call", toolCallId: "s1", toolName: "search", input: { q: 1 }, providerExecuted: true },
        { type: "tool-result", toolCallId: "s1", toolName: "search", output: { type: "json", value: { found: [1, 2] } } },
        { type: "tool-call", toolCallId: "a", toolName: "f", input: { x: 1 }, providerOptions: { google: { thoughtSignature: "c2ln" } } },
        { type: "tool-call", toolCallId: "b", toolName: "f", input: {} },
      ],
    },
    {
      role: "tool",
      content: [
        { type: "tool-result", toolCallId: "a", toolName: "f", output: { type: "error-text", value: "no" } },
        {
          type: "tool-result",
          toolCallId: "b",
          toolName: "f",
          output: { type: "content", value: [{ type: "text", text: "t" }, { type: "image-data", data: "iVBORw0KGgo=", mediaType: "image/png" }] },
        },
      ],
    },
  ];
  const session = d.client.session("ai/parts");
  await session.append(prompt.map((m, i) => toEvent(m, `e${i}`)));
  const context = await session.assemble(own);
  assert.deepEqual(toPrompt(context.messages()).prompt, prompt);
});

test("an item that came after dropped reasoning is not named to its provider", () => {
  for (const name of ["openai", "azure"]) {
    const beside = (of: string, ref: string, itemId: string) => ({ provider: { provider: "ai-sdk", json: { beside: { of, ref, options: { [name]: { itemId, phase: "x" } } } } } });
    const { prompt } = toPrompt([
      { role: "assistant", blocks: [beside("reasoning", "gone", "rs_1"), { tool_call: { call_id: "a", name: "f" } }, beside("tool-call", "a", "fc_1")] },
    ]);
    assert.deepEqual(prompt, [
      { role: "assistant", content: [{ type: "tool-call", toolCallId: "a", toolName: "f", input: {}, providerOptions: { [name]: { phase: "x" } } }] },
    ]);
  }
});

test("a prompt has no empty error and no blank text, which Anthropic refuses", () => {
  const blank = { text: { text: " \n" } };
  const { prompt } = toPrompt([
    { role: "user", blocks: [blank] },
    { role: "assistant", blocks: [blank, { tool_call: { call_id: "a", name: "f" } }, { tool_call: { call_id: "b", name: "f" } }] },
    { role: "tool", blocks: [{ tool_result: { call_id: "a", content: [], is_error: true } }] },
    { role: "tool", blocks: [{ tool_result: { call_id: "b", content: [blank, { media: { mime_type: "image/png", data: "iVBORw0KGgo=" } }] } }] },
  ]);
  assert.deepEqual(prompt, [
    { role: "assistant", content: ["a", "b"].map((toolCallId) => ({ type: "tool-call", toolCallId, toolName: "f", input: {} })) },
    {
      role: "tool",
      content: [
        { type: "tool-result", toolCallId: "a", toolName: "", output: { type: "error-text", value: "[no output]" } },
        { type: "tool-result", toolCallId: "b", toolName: "", output: { type: "content", value: [{ type: "image-data", data: "iVBORw0KGgo=", mediaType: "image/png" }] } },
      ],
    },
  ]);
});

test("a wrong option of the middleware is a TypeError that names it", () => {
  for (const [options, message] of [
    [undefined, /^options must be an object, not undefined$/],
    [{}, /^session must be what client\.session\(id\) returned, not undefined$/],
    [{ session: "s" }, /^session must be what client\.session\(id\) returned, not "s"$/],
    [{ session: new Client("127.0.0.1:1").session("s"), bugdet: {} }, /^contextdMiddleware has no option bugdet$/],
  ] as const) {
    assert.throws(() => contextdMiddleware(options as never), { name: "TypeError", message });
  }
});
