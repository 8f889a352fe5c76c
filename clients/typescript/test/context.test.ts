import assert from "node:assert/strict";
import { test } from "node:test";
import { anthropic } from "../src/anthropic/index.js";
import { gemini } from "../src/gemini/index.js";
import { hashOf, type MessageFormat, own, reminder, text, user } from "../src/index.js";
import { openaiChat, openaiResponses } from "../src/openai/index.js";
import { opening, policy, tight, turn } from "./conversation.js";
import { daemon, noDaemon } from "./daemon.js";

const d = daemon();

const formats: Record<string, MessageFormat<unknown, unknown, unknown>> = {
  own,
  anthropic,
  openaiChat,
  openaiResponses,
  gemini,
};

for (const [name, format] of Object.entries(formats)) {
  for (const injections of [[], [{ name: "now", blocks: [text("It is noon.")], reserveTokens: 50n }]]) {
    const how = injections.length > 0 ? "with injections" : "without injections";
    test(`forty turns in ${name}, ${how}: what is held is what a fresh client gets`, { skip: noDaemon }, async () => {
      const id = `delta/${name}/${injections.length}`;
      const session = d.client.session(id);
      await session.append(opening);
      let breaks = 0;
      let held = 0;
      for (let n = 0; n < 40; n++) {
        await session.append(turn(n));
        if (n === 10) await session.append(reminder("Mind the gap.", { ttlTurns: 2 }));
        const options = { budget: tight, policy, injections };
        const context = await session.assemble(format, options);
        const fresh = await d.client.session(id).assemble(format, { ...options, preview: true });
        assert.deepEqual(context.lines, fresh.lines);
        assert.equal(context.hash, hashOf(context.lines));
        assert.deepEqual(context.requestParams({ cache: false }), fresh.requestParams({ cache: false }));
        const marks = JSON.stringify(context.requestParams()).split('"cache_control"').length - 1;
        assert.equal(marks, context.header.cacheBreakpoints.length);
        assert.ok(marks <= 4 && marks >= (format === anthropic ? 2 : 0), `${marks} marks`);
        const skipped = context.lines.length - context.sent;
        assert.equal(context.header.skippedMessages, skipped);
        if (context.header.haveBroken) breaks++;
        else assert.equal(skipped, held, "everything that was said to be held is skipped");
        held = context.header.prefixMessages;
      }
      assert.ok(breaks >= 2 && breaks < 20, `${breaks} cuts rewrote what was held`);
    });
  }
}

test("formats of one session are held apart", { skip: noDaemon }, async () => {
  const session = d.client.session("apart");
  await session.append([...opening, ...turn(1)]);
  const first = await session.assemble(anthropic, { budget: tight });
  const other = await session.assemble(openaiChat, { budget: tight });
  const again = await session.assemble(anthropic, { budget: tight });
  assert.ok(first.sent > 0 && other.sent > 0);
  assert.equal(again.sent, 0);
  assert.deepEqual(again.messages(), first.messages());
});

test("assemblies at once wait for one another", { skip: noDaemon }, async () => {
  const session = d.client.session("at-once");
  await session.append([...opening, ...turn(1)]);
  const contexts = await Promise.all([1, 2, 3].map(() => session.assemble(anthropic, { budget: tight })));
  assert.deepEqual(
    contexts.map((c) => c.sent),
    [contexts[0]!.lines.length, 0, 0],
  );
});

test("messages are the caller's to change, the held bytes are not touched", { skip: noDaemon }, async () => {
  const session = d.client.session("changed");
  await session.append([...opening, ...turn(1)]);
  const first = await session.assemble(anthropic, { budget: tight });
  const want = first.messages();
  for (const m of first.messages()) m.content = "changed";
  first.requestParams().messages.length = 0;
  assert.deepEqual(first.messages(), want);
  const again = await session.assemble(anthropic, { budget: tight });
  assert.equal(again.sent, 0);
  assert.deepEqual(again.messages(), want);
});

test("a stub's pointer gives back what the tool said", { skip: noDaemon }, async () => {
  const session = d.client.session("pointer");
  await session.append(opening);
  for (let n = 0; n < 20; n++) await session.append(turn(n));
  const context = await session.assemble(own, { budget: tight, policy });
  const pointer = /ctx:[0-9.]+/.exec(JSON.stringify(context.messages()))?.[0];
  assert.ok(pointer, "nothing was dropped");
  const { event, block } = await session.resolvePointer(pointer);
  assert.ok(event.seq > 0n);
  assert.ok(block);
});

test("what the provider counted is learnt from", { skip: noDaemon }, async () => {
  const session = d.client.session("counted");
  await session.append([...opening, ...turn(1)]);
  const context = await session.assemble(anthropic, { budget: tight });
  const estimated = Number(context.header.budget!.projectedTokens);
  const calibration = await session.recordModelCall(context, { model: "claude-sonnet-4-5", inputTokens: estimated * 2 });
  assert.ok(calibration > 1, `${calibration}`);
});

test("an event beyond gRPC's usual 4 MiB is read back", { skip: noDaemon }, async () => {
  const session = d.client.session("large");
  const words = "é".repeat(3 << 20);
  await session.append(user(words));
  const read: string[] = [];
  for await (const { kind } of session.events()) {
    if (kind.case === "message" && kind.value.blocks[0]?.kind.case === "text") read.push(kind.value.blocks[0].kind.value.text);
  }
  assert.ok(read.length === 1 && read[0] === words);
});
