import assert from "node:assert/strict";
import { test } from "node:test";
import type { ModelMessage } from "ai";
import { Anthropic } from "./anthropic.js";
import { daemon, noDaemon } from "./daemon.js";

const d = daemon();

test("the program of docs/adapters/ai-sdk.md keeps its conversation in the session", { skip: noDaemon }, async () => {
  await using provider = await Anthropic.start();
  process.env["CONTEXTD_ADDR"] = d.address;
  const { ask } = await import("./pages/after.js");
  const messages: ModelMessage[] = [];
  for (const question of ["Why does make fail?", "And now?"]) {
    messages.push({ role: "user", content: question });
    const { text, responseMessages } = await ask(messages);
    assert.equal(text, "It lacks a file.");
    messages.push(...responseMessages);
  }
  // Of each question a call, its result and an answer, of which the last is not in the log yet.
  const session = d.client.session("my-session");
  assert.equal((await session.get()).headSeq, 7n);
  assert.deepEqual(provider.requests.map((r) => r.messages.length), [1, 3, 5, 7]);
  assert.match(JSON.stringify(provider.requests.at(-1)), /cache_control/);
  const { call } = await d.client.stub.explainCall({ sessionId: session.id });
  assert.equal(call?.number, 4);
  assert.equal(call?.model, "claude-sonnet-4-5");
});
