import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { LanguageModelV3GenerateResult } from "@ai-sdk/provider";
import { generateText, stepCountIs, tool, wrapLanguageModel } from "ai-6";
import { MockLanguageModelV3 } from "ai-6/test";
import { z } from "zod";
import { contextdMiddleware } from "../src/ai-sdk/index.js";
import { anthropic } from "../src/anthropic/index.js";
import { Client, HeadMismatchError, LogLostError, type Session, type Sidecar, startSidecar, system, user } from "../src/index.js";
import { binary, noDaemon } from "./daemon.js";

let daemon: Sidecar;
let client: Client;

/** A daemon that forgets everything, or another in its place. */
async function start(address = "127.0.0.1:0"): Promise<void> {
  daemon = await startSidecar({ binary: binary(), args: ["--store", "memory", "--listen", address] });
}

async function restart(): Promise<void> {
  await daemon.stop();
  await start(daemon.address);
}

before(async () => {
  if (noDaemon) return;
  await start();
  client = new Client(daemon.address);
});
after(async () => {
  client?.close();
  await daemon?.stop();
});

const talk = [system("You repair builds."), user("Why does make fail?")];

/** Ways to lose a log; the last makes one of the same length in its place. */
const ways: Record<string, (session: Session) => Promise<unknown>> = {
  restarted: restart,
  deleted: (session) => client.stub.deleteSession({ sessionId: session.id }),
  "created again": async (session) => {
    await client.stub.deleteSession({ sessionId: session.id });
    await client.session(session.id).append(talk);
  },
};

for (const [how, lose] of Object.entries(ways)) {
  test(`a session that is ${how} is noticed`, { skip: noDaemon }, async () => {
    const session = client.session(`lost/${how.replace(" ", "-")}`);
    await session.append(talk);
    await session.assemble(anthropic);
    await lose(session);
    for (let i = 0; i < 2; i++) {
      await assert.rejects(
        session.append(user("And now?")),
        (err) => err instanceof LogLostError && err.knownSeq === 2n && err.headSeq === (how === "created again" ? 2n : 0n),
      );
      await assert.rejects(session.assemble(anthropic), LogLostError);
    }
    session.forget();
    if (how !== "created again") await session.append(talk);
    await session.append(user("And now?"));
    assert.equal((await session.assemble(anthropic)).system?.[0]?.text, "You repair builds.");
  });
}

test("other writers disturb nobody", { skip: noDaemon }, async () => {
  const session = await client.createSession("lost/shared");
  await session.append(talk);
  await client.session(session.id).append(user("I am here, too."));
  await assert.rejects(session.append(user("x"), { expectedHead: 2n }), (err) => err instanceof HeadMismatchError && err.headSeq === 3n);
  await session.append(user("And now?"));
  assert.equal((await session.get()).headSeq, 4n);
});

const usage = {
  inputTokens: { total: 9, noCache: 9, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 5, text: 5, reasoning: 0 },
};

/** A model that calls with these arguments, one after the other, and then answers. */
function calling(...written: string[]): MockLanguageModelV3 {
  let n = 0;
  return new MockLanguageModelV3({
    doGenerate: async (): Promise<LanguageModelV3GenerateResult> => {
      const input = written[n++];
      const unified = input === undefined ? "stop" : "tool-calls";
      const content: LanguageModelV3GenerateResult["content"] =
        input === undefined ? [{ type: "text", text: "Done." }] : [{ type: "tool-call", toolCallId: `c${n}`, toolName: "read", input }];
      return { content, finishReason: { unified, raw: unified }, usage, warnings: [] };
    },
  });
}

/** A tool that does something else on the way. */
const reading = (meanwhile: () => Promise<unknown> = async () => {}) => ({
  read: tool({ inputSchema: z.object({ path: z.string() }), execute: async () => (await meanwhile(), "text") }),
});

const roles = (mock: MockLanguageModelV3) => mock.doGenerateCalls.map((c) => c.prompt.map((m) => m.role).join(" "));

for (const how of ["restarted", "deleted"] as const) {
  test(`the AI SDK's prompts keep their beginning where the session is ${how}`, { skip: noDaemon }, async () => {
    const session = client.session(`lost/ai-${how}`);
    const mock = calling('{"path": "a.go"}', '{"path": "b.go"}');
    const model = wrapLanguageModel({ model: mock, middleware: contextdMiddleware({ session }) });
    const lose = () => ways[how]!(session);
    const { text } = await generateText({ model, system: "s", prompt: "one", tools: reading(lose), stopWhen: stepCountIs(9) });
    assert.equal(text, "Done.");
    assert.deepEqual(roles(mock), ["system user", "system user assistant tool", "system user assistant tool assistant tool"]);
    assert.equal((await session.get()).headSeq, 6n);
    // Where nothing is new, too.
    const asked = [{ role: "system" as const, content: "s" }, { role: "user" as const, content: [{ type: "text" as const, text: "one" }] }];
    const other = wrapLanguageModel({ model: mock, middleware: contextdMiddleware({ session: client.session(`${session.id}/again`) }) });
    await other.doGenerate({ prompt: asked });
    await ways[how]!(client.session(`${session.id}/again`));
    await other.doGenerate({ prompt: asked });
    assert.equal(roles(mock).at(-1), "system user");
  });
}

test("another conversation under the id is not gone on with", { skip: noDaemon }, async () => {
  const session = client.session("lost/ai-other");
  const mock = calling('{"path": "a.go"}');
  const model = wrapLanguageModel({ model: mock, middleware: contextdMiddleware({ session }) });
  const run = () => generateText({ model, system: "s", prompt: "one", tools: reading(() => ways["created again"]!(session)), stopWhen: stepCountIs(9), maxRetries: 0 });
  await assert.rejects(run(), LogLostError);
  assert.equal((await client.session(session.id).get()).headSeq, 2n);
});

test("a prompt is appended again, where another process does so at the same time", { skip: noDaemon }, async () => {
  const session = client.session("lost/ai-overtaken");
  const model = wrapLanguageModel({ model: calling(), middleware: contextdMiddleware({ session }) });
  const other = wrapLanguageModel({ model: calling(), middleware: contextdMiddleware({ session: client.session(session.id) }) });
  const said = (text: string) => ({ role: "user" as const, content: [{ type: "text" as const, text }] });
  await model.doGenerate({ prompt: [said("one")] });
  await restart();
  const [forget, append] = [session.forget.bind(session), session.append.bind(session)];
  session.forget = () => {
    forget();
    session.append = async (...given) => {
      session.append = append;
      await other.doGenerate({ prompt: [said("one")] });
      return await append(...given);
    };
  };
  await model.doGenerate({ prompt: [said("one"), said("two")] });
  assert.equal((await session.get()).headSeq, 2n);
});

test("malformed tool input is kept and shown, and the run goes on", { skip: noDaemon }, async () => {
  const session = client.session("ai/malformed");
  const written = ['{"path": "a', "plain words", "[1, 2]", '"x"', '{"path": 1.0}', '{"path": 1e400}', '{"path": "b.go", "n": 1.0}', "null", ""];
  const mock = calling(...written);
  const model = wrapLanguageModel({ model: mock, middleware: contextdMiddleware({ session }) });
  const { text, response } = await generateText({ model, system: "s", prompt: "one", tools: reading(), stopWhen: stepCountIs(20) });
  assert.equal(text, "Done.");
  const kept: string[] = [];
  for await (const e of session.events()) {
    if (e.kind.case !== "message") continue;
    for (const b of e.kind.value.blocks) if (b.kind.case === "toolCall") kept.push(new TextDecoder().decode(b.kind.value.argumentsJson));
  }
  // Of the last but two the SDK made something else, as the schema has no n: that counts.
  assert.deepEqual(kept, written.map((args) => args.replace('{"path": "b.go", "n": 1.0}', '{"path":"b.go"}')));
  const last = mock.doGenerateCalls.at(-1)!.prompt.flatMap((m) => (m.role === "assistant" ? m.content : []));
  assert.deepEqual(
    last.flatMap((p) => (p.type === "tool-call" ? [p.input] : [])),
    [{ raw_arguments: '{"path": "a' }, { raw_arguments: "plain words" }, { raw_arguments: "[1,2]" }, { raw_arguments: '"x"' }, { path: 1 }, { raw_arguments: '{"path":1e400}' }, { path: "b.go" }, { raw_arguments: "null" }, {}],
  );
  // And so does a later run, in a process that knows the prompts alone.
  const again = wrapLanguageModel({ model: calling(), middleware: contextdMiddleware({ session: client.session(session.id) }) });
  const messages = [{ role: "user" as const, content: "one" }, ...response.messages, { role: "user" as const, content: "two" }];
  assert.equal((await generateText({ model: again, system: "s", messages, tools: reading() })).text, "Done.");
});
