import assert from "node:assert/strict";
import { test } from "node:test";
import * as ai7 from "ai";
import * as ai6 from "ai-6";
import { convertArrayToReadableStream, MockLanguageModelV4 } from "ai/test";
import { MockLanguageModelV3 } from "ai-6/test";
import { z } from "zod";
import { contextdMiddleware } from "../src/ai-sdk-7/index.js";
import { contextdMiddleware as contextdMiddleware6 } from "../src/ai-sdk/index.js";
import { daemon, noDaemon } from "./daemon.js";
import { paired } from "./scripted.js";

const d = daemon();

/** A model that streams these turns, one a call. A turn is the names of the tools that it calls; without any it answers. */
function turns(...all: string[][]) {
  let n = 0;
  return {
    doStream: async () => {
      const i = n++;
      const calls = all[i]!.map((toolName, k) => {
        const providerMetadata = { openai: { itemId: `fc_${i}_${k}` } };
        return { type: "tool-call" as const, toolCallId: `call-${i}-${k}`, toolName, input: toolName === "wrong" ? '{"at": 5}' : "{}", providerMetadata };
      });
      const unified = calls.length > 0 ? ("tool-calls" as const) : ("stop" as const);
      const usage = { inputTokens: { total: 9, noCache: 9, cacheRead: 0, cacheWrite: 0 }, outputTokens: { total: 5, text: 5, reasoning: 0 } };
      return {
        stream: convertArrayToReadableStream([
          { type: "stream-start", warnings: [] },
          { type: "text-start", id: "t" },
          { type: "text-delta", id: "t", delta: `Turn ${i}.` },
          { type: "text-end", id: "t" },
          ...calls,
          { type: "finish", finishReason: { unified, raw: unified }, usage },
        ]),
      } as never;
    },
  };
}

const script = [["slow", "fail", "date"], ["wrong", "nothere"], [], ["danger", "date"], [], []];

const version7 = () => {
  const model = new MockLanguageModelV4(turns(...script));
  const wrapped = () => ai7.wrapLanguageModel({ model, middleware: contextdMiddleware({ session: d.client.session("ui7") }) });
  return { sdk: ai7, wrapped, prompts: () => model.doStreamCalls.map((c) => c.prompt) };
};

const version6 = () => {
  const model = new MockLanguageModelV3(turns(...script));
  const wrapped = () => ai6.wrapLanguageModel({ model, middleware: contextdMiddleware6({ session: d.client.session("ui6") }) });
  return { sdk: ai6 as unknown as typeof ai7, wrapped, prompts: () => model.doStreamCalls.map((c) => c.prompt) };
};

for (const [name, version] of Object.entries({ version6, version7 })) {
  test(`${name}: a conversation of UI messages goes on in each request, whatever its tools did`, { skip: noDaemon }, async () => {
    const { sdk, wrapped, prompts } = version();
    const none = z.object({});
    const tools = {
      slow: sdk.tool({ inputSchema: none, execute: () => new Promise<string>((done) => setImmediate(done, "late")) }),
      fail: sdk.tool({ inputSchema: none, execute: (): string => { throw new Error("no disk"); } }),
      date: sdk.tool({ inputSchema: none, execute: async () => ({ at: new Date(0), gone: undefined }) }),
      wrong: sdk.tool({ inputSchema: z.object({ at: z.string() }), execute: async () => "" }),
      danger: sdk.tool({ inputSchema: none, needsApproval: true, execute: async () => "" }),
    };
    let messages: ai7.UIMessage[] = [];
    for (const said of ["one", "two", undefined, "three"]) {
      if (said) messages.push({ id: said, role: "user", parts: [{ type: "text", text: said }] });
      // What a browser sends: its copy, and an answer to what it was asked.
      messages = JSON.parse(JSON.stringify(messages), (_, v) =>
        v?.state === "approval-requested" ? { ...v, state: "approval-responded", approval: { ...v.approval, approved: false, reason: "Not now." } } : v);
      const result = sdk.streamText({
        model: wrapped(), // another process, perhaps
        messages: await sdk.convertToModelMessages(messages, { tools }),
        tools,
        stopWhen: sdk.stepCountIs(5),
        maxRetries: 0,
      });
      const stream = result.toUIMessageStream({ originalMessages: messages, onError: () => "Something went wrong." });
      let answer: ai7.UIMessage | undefined;
      const continued = said ? [] : messages.splice(-1); // an approval continues the answer that asked for it
      for await (const m of sdk.readUIMessageStream({ stream, ...(continued[0] ? { message: continued[0] } : {}) })) answer = m;
      await result.text; // throws where there was an error
      messages.push(answer!);
    }
    assert.equal(prompts().length, script.length);
    for (const prompt of prompts()) {
      const sorted = prompt.map((m) => (m.role === "tool" ? { ...m, content: m.content.toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1)) } : m));
      paired(sorted as typeof prompt);
    }
    // The model sees to the end what it saw at first.
    const end = JSON.stringify(prompts().at(-1));
    assert.match(end, /no disk/);
    assert.match(end, /Not now\./);
    assert.doesNotMatch(end, /Something went wrong/);
  });
}
