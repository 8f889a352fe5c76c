import assert from "node:assert/strict";
import { test } from "node:test";
import { generateText, type ModelMessage, stepCountIs, streamText, tool, wrapLanguageModel } from "ai";
import { convertArrayToReadableStream, MockLanguageModelV4 } from "ai/test";
import { z } from "zod";
import { contextdMiddleware, type MiddlewareOptions, PromptDivergedError } from "../src/ai-sdk-7/index.js";
import { fromV4, type LanguageModelV4Prompt, toV4 } from "../src/ai-sdk-7/prompt.js";
import { policy, tight } from "./conversation.js";
import { daemon, noDaemon } from "./daemon.js";

const d = daemon();

type LanguageModelV4GenerateResult = Awaited<ReturnType<MockLanguageModelV4["doGenerate"]>>;
type LanguageModelV4StreamPart = Awaited<ReturnType<MockLanguageModelV4["doStream"]>>["stream"] extends ReadableStream<infer P> ? P : never;

const usage = {
  inputTokens: { total: 900, noCache: 900, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 5, text: 5, reasoning: 0 },
};

/** A model that calls tools so many times, two at once in every third turn, and then answers. */
function model(rounds: number, input = (path: string) => JSON.stringify({ path })): MockLanguageModelV4 {
  let n = 0;
  const next = (): Pick<LanguageModelV4GenerateResult, "content" | "finishReason"> => {
    const i = n++;
    const calls = (i % 3 === 2 ? ["a", "b"] : ["a"]).map((c) => ({
      type: "tool-call" as const,
      toolCallId: `call-${i}${c}-${Math.random()}`,
      toolName: "read",
      input: input(`file${i}${c}.go`),
    }));
    const unified = i < rounds ? ("tool-calls" as const) : ("stop" as const);
    return { content: [{ type: "text", text: `Step ${i}.` }, ...(i < rounds ? calls : [])], finishReason: { unified, raw: unified } };
  };
  return new MockLanguageModelV4({
    modelId: "claude-sonnet-4-5",
    doGenerate: async () => ({ ...next(), usage, warnings: [] }),
    doStream: async () => {
      const { content, finishReason } = next();
      const calls = content.filter((c) => c.type === "tool-call");
      const chunks: LanguageModelV4StreamPart[] = [
        { type: "stream-start", warnings: [] },
        { type: "text-start", id: "t" },
        { type: "text-delta", id: "t", delta: "Step." },
        { type: "text-end", id: "t" },
        ...calls,
        { type: "finish", finishReason, usage },
      ];
      return { stream: convertArrayToReadableStream(chunks) };
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

const wrapped = (mock: MockLanguageModelV4, options: MiddlewareOptions) =>
  wrapLanguageModel({ model: mock, middleware: contextdMiddleware(options) });

function paired(prompt: LanguageModelV4Prompt): void {
  const calls = prompt.flatMap((m) => (m.role === "assistant" ? m.content : [])).flatMap((p) => (p.type === "tool-call" ? p.toolCallId : []));
  const results = prompt.flatMap((m) => (m.role === "tool" ? m.content : [])).flatMap((p) => (p.type === "tool-result" ? p.toolCallId : []));
  assert.deepEqual(results, calls);
}

for (const streamed of [false, true]) {
  test(`a ${streamed ? "streaming" : "generating"} agent's prompts are the session's context`, { skip: noDaemon }, async () => {
    const session = d.client.session(`ai7/agent-${streamed}`);
    const mock = model(18);
    const errors: unknown[] = [];
    const given = {
      model: wrapped(mock, { session, budget: tight, policy, onRecordError: (e: unknown) => errors.push(e) }),
      prompt: "Why does make fail?",
      tools,
      stopWhen: stepCountIs(30),
    };
    if (streamed) await streamText(given).consumeStream();
    else await generateText(given);
    assert.deepEqual(errors, []);
    const prompts = (streamed ? mock.doStreamCalls : mock.doGenerateCalls).map((c) => c.prompt);
    assert.equal(prompts.length, 19);
    prompts.forEach(paired);
    assert.ok(JSON.stringify(prompts.at(-1)).length < 18 * 1800, "nothing was reduced");
    const { call } = await d.client.stub.explainCall({ sessionId: session.id });
    assert.equal(call?.number, 19);
    assert.equal(call?.inputTokens, 900n);
  });
}

test("a conversation goes on in another process, and one that was edited is refused", { skip: noDaemon }, async () => {
  const messages: ModelMessage[] = [{ role: "user", content: "one" }];
  for (let n = 0; n < 3; n++) {
    const session = d.client.session("ai7/resumed"); // and a middleware that knows nothing yet
    const { responseMessages } = await generateText({ model: wrapped(model(1), { session }), messages, tools, stopWhen: stepCountIs(3) });
    messages.push(...responseMessages, { role: "user", content: `and ${n}?` });
  }
  const session = d.client.session("ai7/resumed");
  // Of each round the user's message, a call, a result and (but for the last) an answer.
  assert.equal((await session.get()).headSeq, 3n * 4n - 1n);
  messages.splice(1);
  messages.push({ role: "user", content: "no, this" });
  await assert.rejects(
    generateText({ model: wrapped(model(0), { session }), messages, maxRetries: 0 }),
    (err) => err instanceof PromptDivergedError && err.index === 1,
  );
});

test("malformed input is kept, and the agent goes on", { skip: noDaemon }, async () => {
  const session = d.client.session("ai7/malformed");
  const mock = model(2, () => '{"path": "a');
  const result = await generateText({ model: wrapped(mock, { session }), prompt: "go", tools, stopWhen: stepCountIs(5) });
  assert.equal(result.text, "Step 2.");
  paired(mock.doGenerateCalls.at(-1)!.prompt);
  const written: string[] = [];
  for await (const e of session.events()) {
    if (e.kind.case !== "message") continue;
    for (const b of e.kind.value.blocks) if (b.kind.case === "toolCall") written.push(new TextDecoder().decode(b.kind.value.argumentsJson));
  }
  assert.deepEqual(written, ['{"path": "a', '{"path": "a']);
});

test("files of prompts are those of the version before", () => {
  const prompt: LanguageModelV4Prompt = [
    { role: "user", content: [
      { type: "file", mediaType: "image/png", data: { type: "data", data: "iVBORw0KGgo=" } },
      { type: "file", mediaType: "application/pdf", data: { type: "url", url: new URL("https://example.com/a.pdf") } },
    ] },
    { role: "tool", content: [{ type: "tool-result", toolCallId: "a", toolName: "f", output: { type: "content", value: [
      { type: "text", text: "t" },
      { type: "file", mediaType: "image/png", data: { type: "data", data: "iVBORw0KGgo=" } },
      { type: "file", mediaType: "image/png", data: { type: "url", url: new URL("https://example.com/a.png") } },
    ] } }] },
  ];
  assert.deepEqual(toV4(fromV4(prompt)), prompt);
  assert.throws(
    () => fromV4([{ role: "user", content: [{ type: "file", mediaType: "image/png", data: { type: "reference", reference: {} } }] }]),
    TypeError,
  );
});
