import assert from "node:assert/strict";
import { test } from "node:test";
import type { MastraModelConfig } from "@mastra/core/llm";
import { Memory } from "@mastra/memory";
import { wrapLanguageModel } from "ai";
import { wrapLanguageModel as wrapLanguageModel6 } from "ai-6";
import { z } from "zod";
import { contextdMiddleware } from "../src/ai-sdk-7/index.js";
import { contextdMiddleware as contextdMiddleware6, type MiddlewareOptions, PromptDivergedError } from "../src/ai-sdk/index.js";
import { Client, LogLostError, type Session, startSidecar, text as block, user } from "../src/index.js";
import { Anthropic } from "../test/anthropic.js";
import { policy, tight } from "../test/conversation.js";
import { binary, daemon, noDaemon } from "../test/daemon.js";
import { paired, read, type Script, scripted, scripted6 } from "../test/scripted.js";

const d = daemon();

type Agents = typeof import("@mastra/core/agent");
type Tools = typeof import("@mastra/core/tools");
type Prompt = Parameters<typeof paired>[0];

/** A model wrapped by the middleware, and the prompts that it got. */
interface Wrapped {
  model: MastraModelConfig;
  prompts: () => Prompt[];
}

function version7(script: Script, options: MiddlewareOptions): Wrapped {
  const mock = scripted(script);
  const model = wrapLanguageModel({ model: mock, middleware: contextdMiddleware(options) });
  // Mastra's types of version 7 are older than those of the AI SDK.
  return { model: model as MastraModelConfig, prompts: () => [...mock.doGenerateCalls, ...mock.doStreamCalls].map((c) => c.prompt) };
}

function version6(script: Script, options: MiddlewareOptions): Wrapped {
  const mock = scripted6(script);
  const model = wrapLanguageModel6({ model: mock, middleware: contextdMiddleware6(options) });
  return { model, prompts: () => [...mock.doGenerateCalls, ...mock.doStreamCalls].map((c) => c.prompt) };
}

const versions = [
  { name: "mastra-ai-sdk-7", wrap: version7, agents: () => import("@mastra/core/agent"), tools: () => import("@mastra/core/tools") },
  { name: "mastra-ai-sdk-6", wrap: version6, agents: () => import("@mastra/core/agent"), tools: () => import("@mastra/core/tools") },
  {
    name: "oldest-mastra-ai-sdk-6",
    wrap: version6,
    agents: async () => (await import("mastra-oldest/agent")) as unknown as Agents,
    tools: async () => (await import("mastra-oldest/tools")) as unknown as Tools,
  },
];

for (const { name, wrap, agents, tools } of versions) {
  const { Agent } = await agents();
  const { createTool } = await tools();
  const inputSchema = z.object({ path: z.string() });
  const given = {
    read: createTool({ id: "read", description: "Read a file", inputSchema, execute: async ({ path }) => read(path) }),
    ask: createTool({ id: "ask", description: "Ask the user", inputSchema }), // answered by the caller
  };
  const agent = (model: MastraModelConfig) =>
    new Agent({ id: "builds", name: "builds", instructions: "You repair builds.", tools: given, model, maxRetries: 0 });
  const session = (id: string) => d.client.session(`${name}/${id}`); // a new object without state
  const options = { maxSteps: 30 };

  for (const streamed of [false, true]) {
    test(`${name}: a ${streamed ? "streaming" : "generating"} agent's prompts are the session's context`, { skip: noDaemon }, async () => {
      const errors: unknown[] = [];
      const s = session(`agent-${streamed}`);
      const { model, prompts } = wrap({ rounds: 18 }, { session: s, budget: tight, policy, onRecordError: (e) => errors.push(e) });
      if (streamed) await (await agent(model).stream("Why does make fail?", options)).consumeStream();
      else assert.match((await agent(model).generate("Why does make fail?", options)).text, /Step 18\.$/);
      assert.deepEqual(errors, []);
      assert.equal(prompts().length, 19);
      prompts().forEach(paired);
      assert.ok(JSON.stringify(prompts().at(-1)).length < 18 * 1800, "nothing was reduced");
      // System, question, and of each round the call and the results.
      assert.equal((await s.get()).headSeq, 2n + 18n * 2n);
      const { call } = await d.client.stub.explainCall({ sessionId: s.id });
      assert.equal(call?.number, 19);
      assert.equal(call?.inputTokens, 900n);
    });
  }

  test(`${name}: a conversation goes on in another process, and one that was edited is refused`, { skip: noDaemon }, async () => {
    const messages: object[] = [];
    const ask = (question: string, script: Script) => {
      messages.push({ role: "user", content: question });
      return agent(wrap(script, { session: session("resumed") }).model).generate(messages as never, options);
    };
    for (let n = 0; n < 3; n++) {
      const silent = n > 0 && !name.startsWith("oldest"); // which joins such steps
      const { response } = await ask(`Question ${n}`, { rounds: 3, silent, ...(n === 1 ? { input: '{"path": 5}' } : {}) });
      messages.push(...JSON.parse(JSON.stringify(response.uiMessages)));
    }
    assert.equal((await session("resumed").get()).headSeq, 1n + 3n * 8n - 1n);
    messages.splice(1);
    await assert.rejects(ask("No, this.", { rounds: 0 }), (err) => err instanceof PromptDivergedError && err.index === 2);
  });

  test(`${name}: malformed input is kept, and the agent goes on`, { skip: noDaemon }, async () => {
    for (const [n, input] of ['{"path": "a', "plain words", "null", '{"path": 1e999}', '{"path": 5}'].entries()) {
      const s = session(`malformed-${n}`);
      const { model, prompts } = wrap({ rounds: 1, input }, { session: s });
      await agent(model).generate("Go", options);
      assert.equal(prompts().length, 2);
      prompts().forEach(paired);
      assert.deepEqual(await written(s), [input]);
    }
  });

  test(`${name}: a late result is appended, and a call without one is not shown`, { skip: noDaemon }, async () => {
    for (const late of [true, false]) {
      const s = session(`late-${late}`);
      const first = await agent(wrap({ rounds: 1, tool: "ask" }, { session: s }).model).generate("Why?", options);
      const { toolCallId } = first.toolCalls[0]!.payload;
      const result = { role: "tool", content: [{ type: "tool-result", toolCallId, toolName: "ask", output: { type: "text", value: "late" } }] };
      const then = late ? result : { role: "user", content: "Go on." };
      const { model, prompts } = wrap({ rounds: 0 }, { session: session(`late-${late}`) });
      await agent(model).generate([{ role: "user", content: "Why?" }, ...first.response.messages!, then] as never, options);
      paired(prompts()[0]!);
      assert.match(JSON.stringify(prompts()[0]), late ? /"late"/ : /"Go on\."/);
      assert.equal((await written(s)).length, late ? 1 : 0);
    }
  });

  test(`${name}: a lost log is appended again, unless another is there`, { skip: noDaemon }, async (t) => {
    for (const replaced of [false, true]) {
      const start = (listen: string) => startSidecar({ binary: binary(), args: ["--store", "memory", "--listen", listen] });
      let sidecar = await start("127.0.0.1:0");
      t.after(() => sidecar.stop());
      const client = new Client(sidecar.address);
      const s = client.session("s");
      const builds = agent(wrap({ rounds: 1 }, { session: s }).model);
      const { response } = await builds.generate("Why?", options);
      await sidecar.stop();
      sidecar = await start(sidecar.address);
      if (replaced) await client.session("s").append([user([block("Mine.")])]);
      const next = builds.generate([{ role: "user", content: "Why?" }, ...response.messages!, { role: "user", content: "And now?" }] as never, options);
      if (replaced) await assert.rejects(next, LogLostError);
      else await next.then(async () => assert.equal((await s.get()).headSeq, 6n));
      client.close();
    }
  });
}

test("memory that recalls every message is the history of the session, and one that does not is refused", { skip: noDaemon }, async () => {
  const { Agent } = await import("@mastra/core/agent");
  const { InMemoryStore } = await import("@mastra/core/storage");
  const { tools } = await import("./tools.js");
  const run = async (lastMessages: number) => {
    const storage = new InMemoryStore();
    for (let n = 0; n < 4; n++) {
      const { model } = version7({ rounds: 1 }, { session: d.client.session(`memory/${lastMessages}`) });
      const memory = new Memory({ storage, options: { lastMessages } });
      const agent = new Agent({ id: "builds", name: "builds", instructions: "You repair builds.", tools, model, memory });
      await agent.generate(`Question ${n}`, { memory: { thread: "t", resource: "r" } });
    }
  };
  await run(10_000);
  assert.equal((await d.client.session("memory/10000").get()).headSeq, 1n + 4n * 4n - 1n);
  await assert.rejects(run(2), PromptDivergedError);
});

test("the program of docs/adapters/mastra.md keeps its conversation in the session", { skip: noDaemon }, async () => {
  await using provider = await Anthropic.start();
  process.env["CONTEXTD_ADDR"] = d.address;
  const { ask } = await import("./after.js");
  assert.equal((await ask("Why does make fail?")).text, "It lacks a file.");
  assert.equal((await ask("And now?")).text, "It lacks a file.");
  assert.deepEqual(provider.requests.map((r) => r.messages.length), [1, 3, 5, 7]);
  const { call } = await d.client.stub.explainCall({ sessionId: "my-session" });
  assert.equal(call?.number, 4);
});

/** The arguments of calls in the log, as they were written. */
async function written(session: Session): Promise<string[]> {
  const args: string[] = [];
  for await (const e of session.events()) {
    if (e.kind.case !== "message") continue;
    for (const b of e.kind.value.blocks) if (b.kind.case === "toolCall") args.push(new TextDecoder().decode(b.kind.value.argumentsJson));
  }
  return args;
}
