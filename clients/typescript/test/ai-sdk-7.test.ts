import assert from "node:assert/strict";
import { test } from "node:test";
import { generateText, type ModelMessage, stepCountIs, streamText, tool, wrapLanguageModel } from "ai";
import type { MockLanguageModelV4 } from "ai/test";
import { z } from "zod";
import { contextdMiddleware, type MiddlewareOptions, PromptDivergedError } from "../src/ai-sdk-7/index.js";
import { fromV4, type LanguageModelV4Prompt, toV4 } from "../src/ai-sdk-7/prompt.js";
import { policy, tight } from "./conversation.js";
import { daemon, noDaemon } from "./daemon.js";
import { paired, read, scripted } from "./scripted.js";

const d = daemon();

const tools = {
  read: tool({
    inputSchema: z.object({ path: z.string() }),
    execute: async ({ path }: { path: string }) => read(path),
  }),
};

const wrapped = (mock: MockLanguageModelV4, options: MiddlewareOptions) =>
  wrapLanguageModel({ model: mock, middleware: contextdMiddleware(options) });

for (const streamed of [false, true]) {
  test(`a ${streamed ? "streaming" : "generating"} agent's prompts are the session's context`, { skip: noDaemon }, async () => {
    const session = d.client.session(`ai7/agent-${streamed}`);
    const mock = scripted({ rounds: 18 });
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
    const { responseMessages } = await generateText({ model: wrapped(scripted({ rounds: 1 }), { session }), messages, tools, stopWhen: stepCountIs(3) });
    messages.push(...responseMessages, { role: "user", content: `and ${n}?` });
  }
  const session = d.client.session("ai7/resumed");
  // Of each round the user's message, a call, a result and (but for the last) an answer.
  assert.equal((await session.get()).headSeq, 3n * 4n - 1n);
  messages.splice(1);
  messages.push({ role: "user", content: "no, this" });
  await assert.rejects(
    generateText({ model: wrapped(scripted({ rounds: 0 }), { session }), messages, maxRetries: 0 }),
    (err) => err instanceof PromptDivergedError && err.index === 1,
  );
});

test("malformed input is kept, and the agent goes on", { skip: noDaemon }, async () => {
  const session = d.client.session("ai7/malformed");
  const mock = scripted({ rounds: 2, input: '{"path": "a' });
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

test("room is left for the tools", { skip: noDaemon }, async () => {
  const large = tool({ description: "word ".repeat(tight.maxTokens), inputSchema: z.object({}), execute: async () => "" });
  const given = { model: wrapped(scripted({ rounds: 0 }), { session: d.client.session("ai7/tools"), budget: tight }), prompt: "go", maxRetries: 0 };
  assert.equal((await generateText({ ...given, tools })).text, "Step 0.");
  await assert.rejects(generateText({ ...given, tools: { large } }), /overhead_tokens/);
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
