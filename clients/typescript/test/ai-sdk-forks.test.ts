import assert from "node:assert/strict";
import { test } from "node:test";
import { generateText, type ModelMessage, wrapLanguageModel } from "ai";
import { MockLanguageModelV4 } from "ai/test";
import { contextdMiddleware, type MiddlewareOptions, PromptDivergedError } from "../src/ai-sdk-7/index.js";
import { InvalidArgumentError, user } from "../src/index.js";
import { daemon, noDaemon } from "./daemon.js";

const d = daemon();

const usage = {
  inputTokens: { total: 900, noCache: 900, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 5, text: 5, reasoning: 0 },
};

/** A model that answers, and what it was given. Each middleware is as in a process of its own. */
function talk(id: string, options: Partial<MiddlewareOptions> = {}, wait: () => Promise<void> = async () => {}) {
  const mock = new MockLanguageModelV4({
    doGenerate: async () => {
      await wait();
      return { content: [{ type: "text", text: "ok" }], finishReason: { unified: "stop", raw: "stop" }, usage, warnings: [] };
    },
  });
  const model = wrapLanguageModel({ model: mock, middleware: contextdMiddleware({ session: d.client.session(id), ...options }) });
  return async (...said: string[]) => {
    const messages = said.map((content, i): ModelMessage => ({ role: i % 2 === 0 ? "user" : "assistant", content }));
    await generateText({ model, messages, maxRetries: 0 });
    return mock.doGenerateCalls.at(-1)!.prompt.flatMap((m) => (typeof m.content === "string" ? m.content : m.content.map((p) => (p.type === "text" ? p.text : p.type))));
  };
}

/** The lengths of the logs of a session and its forks. */
async function heads(id: string): Promise<Record<string, number>> {
  const found: Record<string, number> = {};
  for await (const s of d.client.sessions()) if (s.sessionId.startsWith(id)) found[s.sessionId.slice(id.length)] = Number(s.headSeq);
  return found;
}

test("edited conversations go on in forks, each in the one that it continues", { skip: noDaemon }, async () => {
  const id = "forks/edited";
  const session = await d.client.createSession(id, { labels: { of: "me" } });
  const say = talk(id, { diverged: "fork", session });
  await say("q1", "ok", "q2");
  assert.deepEqual(await say("q1", "ok", "edited"), ["q1", "ok", "edited"]);
  assert.deepEqual(await say("q1", "ok", "q2", "ok", "q3"), ["q1", "ok", "q2", "ok", "q3"]);
  assert.deepEqual(await say("q1", "ok", "edited", "ok", "q4"), ["q1", "ok", "edited", "ok", "q4"]);
  const other = talk(id, { diverged: "fork" });
  assert.deepEqual(await other("q1", "ok", "q2", "ok", "q3", "ok", "q5"), ["q1", "ok", "q2", "ok", "q3", "ok", "q5"]);
  assert.deepEqual(await heads(id), { "": 7, "/v2": 5 });
  assert.deepEqual(await other("new"), ["new"]);
  assert.deepEqual(await heads(id), { "": 7, "/v2": 5, "/v3": 1 });
  assert.deepEqual((await d.client.session(`${id}/v3`).get()).labels, { of: "me" });
  const { call } = await d.client.stub.explainCall({ sessionId: `${id}/v2` });
  assert.equal(call?.inputTokens, 900n);
});

for (const diverged of ["throw", "fork"] as const) {
  test(`two requests at once do not see one another's messages: ${diverged}`, { skip: noDaemon }, async () => {
    const id = `forks/at-once-${diverged}`;
    await talk(id)("q1");
    const [one, two] = [talk(id, { diverged }), talk(id, { diverged })];
    const done = await Promise.allSettled([one("q1", "ok", "left"), two("q1", "ok", "right")]);
    const given = done.flatMap((r) => (r.status === "fulfilled" ? [r.value.join()] : []));
    const failed = done.flatMap((r) => (r.status === "rejected" ? [r.reason] : []));
    if (diverged === "fork") assert.deepEqual(given, ["q1,ok,left", "q1,ok,right"]);
    else assert.ok(given.length === 1 && /^q1,ok,(left|right)$/.test(given[0]!) && failed[0] instanceof PromptDivergedError, String(failed));
    assert.deepEqual(await heads(id), diverged === "fork" ? { "": 3, "/v2": 3 } : { "": 3 });
    const last = given.at(-1)!.split(",");
    const after = talk(id, { diverged });
    for (const n of [1, 2, 3]) assert.deepEqual(await after(...last, ...Array.from({ length: 2 * n }, (_, i) => `more${i}`)), [...last, ...Array.from({ length: 2 * n }, (_, i) => `more${i}`)]);
    assert.equal(Object.keys(await heads(id)).length, diverged === "fork" ? 2 : 1);
  });
}

test("what others append meanwhile is no divergence", { skip: noDaemon }, async () => {
  const id = "forks/others";
  const say = talk(id);
  await say("q1");
  await d.client.session(id).append(user("From somebody else."));
  assert.deepEqual(await say("q1", "ok", "q2"), ["q1", "From somebody else.", "ok", "q2"]);
});

test("a divergence and a refused id say what to do", { skip: noDaemon }, async () => {
  const say = talk("forks/error");
  await say("q1", "ok", "q2");
  await assert.rejects(say("q1", "ok", "edited"), (err) => err instanceof PromptDivergedError && err.seq === 2n && /at seq 2, .*diverged: "fork"/.test(err.message));
  await assert.rejects(say("edited"), /take another session/);
  await assert.rejects(talk("user one")("q1"), (err) => err instanceof InvalidArgumentError && /session_id: must be of letters/.test(err.message));
  assert.throws(() => contextdMiddleware({ session: d.client.session("s"), diverged: "raise" as never }), /^TypeError: diverged must be "throw" or "fork", not "raise"$/);
});
