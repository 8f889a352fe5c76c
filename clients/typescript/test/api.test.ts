import assert from "node:assert/strict";
import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { anthropic } from "../src/anthropic/index.js";
import { assistant, Client, InvalidArgumentError, LogLostError, type Session, startSidecar, system, toolCall, toolResult, user } from "../src/index.js";
import type { EventInit } from "../src/index.js";
import { Format } from "../src/proto.js";
import { opening, policy, tight, turn } from "./conversation.js";
import { binary, daemon, noDaemon } from "./daemon.js";

const d = daemon();
const skip = noDaemon;
const result = "a line of result\n".repeat(200);

async function list<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

/** Appends turns with large results. */
async function fill(session: Session, turns: number): Promise<void> {
  const turn = (n: number): EventInit[] => {
    const id = `call-${n}-${performance.now()}`;
    return [user(`Why does make fail, ${n}?`), assistant([toolCall(id, "read", { path: `file${n}.go` })]), toolResult(id, result)];
  };
  await session.append([system("You repair builds."), ...Array.from({ length: turns }, (_, n) => turn(n)).flat()]);
}

test("sessions are listed, forked and deleted", { skip }, async () => {
  for (const n of [0, 1, 2]) await d.client.createSession(`list/${n}`, { labels: { test: "list" } });
  const ids = async () => (await list(d.client.sessions({ test: "list" }))).map((s) => s.sessionId);
  assert.deepEqual(await ids(), ["list/0", "list/1", "list/2"]);
  const session = d.client.session("list/0");
  await session.append([user("one"), user("two")]);
  const fork = await session.fork("list/fork", { atSeq: 1n });
  assert.equal((await list(fork.events())).length, 1);
  await session.delete();
  assert.deepEqual(await ids(), ["list/1", "list/2", "list/fork"]); // a fork has the labels, too
  await session.append(user("one"));
});

test("lists may be longer than a page", { skip }, async () => {
  const made = Array.from({ length: 101 }, (_, n) => `long/${String(n).padStart(3, "0")}`);
  await Promise.all(made.map((id) => d.client.createSession(id, { labels: { test: "long" } })));
  assert.deepEqual((await list(d.client.sessions({ test: "long" }))).map((s) => s.sessionId), made);
});

test("a compaction holds until it is undone", { skip }, async () => {
  const session = d.client.session("compact");
  await fill(session, 6);
  const done = await session.compact({ keepLastTurns: 1, summary: "Six files were read." });
  assert.equal(done.outcome, "compacted");
  assert.ok(done.tokensAfter < done.tokensBefore);
  assert.match((await session.summaries())[0]!.text, /Six files were read\./);
  const shown = async () => JSON.stringify((await session.assemble(anthropic, { budget: { maxTokens: 20_000 } })).messages());
  assert.match(await shown(), /Six files were read\./);
  assert.deepEqual((await session.undoCompaction()).undoneSeqs, [done.compactionSeq]);
  assert.doesNotMatch(await shown(), /Six files were read\./);
});

test("half of a surrogate pair in texts becomes U+FFFD", { skip }, async () => {
  const session = d.client.session("half");
  await fill(session, 6);
  const { receipts } = await session.append([user("It says \udcff."), assistant([toolCall("c\ud83d\ude00", "say", '{"a":"\udcff"}')])]);
  assert.equal(await session.recall(`ctx:${receipts[0]!.seq}.0`), "It says \ufffd.");
  assert.equal(await session.recall(`ctx:${receipts[1]!.seq}.0`), '{"a":"\ufffd"}');
  assert.ok((await session.explain("says \udcff")).sightings.length > 0);
  const done = await session.compact({ keepLastTurns: 1, summary: "Six files \udcff." });
  assert.equal(done.summary?.text, "Six files \ufffd.");
});

test("what was recorded is explained, replayed and recalled", { skip }, async () => {
  const session = d.client.session("records");
  await fill(session, 6);
  const context = await session.assemble(anthropic, { budget: { maxTokens: 2500 } });
  await session.recordModelCall(context, { model: "m", inputTokens: 2000 });
  const explained = await session.explain("file0.go");
  assert.equal(explained.call?.projectionId, context.header.projectionId);
  assert.ok(explained.sightings.length > 0);
  const [call] = await list(session.calls());
  assert.equal(call?.inputTokens, 2000n);
  const [projection] = await list(session.projections());
  assert.equal(projection?.projectionId, context.header.projectionId);
  assert.ok((await session.replayProjection(context.header.projectionId)).same);
  const { replay, lines } = await session.renderProjection();
  assert.ok(replay?.same && lines.length >= 3);
  const pointers = context.header.projection?.redactionPointers ?? [];
  const texts = await Promise.all(pointers.map(({ pointer }) => session.recall(pointer)));
  assert.ok(texts.includes(result));
});

test("transcripts go in and out", { skip }, async () => {
  const transcript = Buffer.from(
    JSON.stringify([
      { role: "system", content: "You repair builds." },
      { role: "user", content: "Why does make fail?" },
      { role: "assistant", content: "A semicolon is missing." },
    ]),
  );
  const path = join(await mkdtemp(join(tmpdir(), "contextd-")), "talk.json");
  await writeFile(path, transcript);
  const session = d.client.session("transcripts");
  assert.equal((await session.importTranscript(transcript)).events, 3);
  assert.equal((await session.importTranscript(path)).events, 0);
  const exported = await session.exportTranscript("pi", { harnessSessionId: "x" });
  assert.ok(exported.report!.entries > 0n);
  const converted = await d.client.convertTranscript(path, "pi", { harnessSessionId: "x" });
  for (const { data } of [exported, converted]) assert.match(Buffer.from(data).toString(), /A semicolon is missing\./);
  const long = Buffer.concat(Array.from({ length: 5000 }, () => transcript));
  await assert.rejects(session.importTranscript(long, { harness: "none" }), InvalidArgumentError);
  await assert.rejects(session.importTranscript(5 as never), TypeError);
});

test("events that are in no log are projected as those of a log", { skip }, async () => {
  const session = d.client.session("projected");
  const events = [...opening, ...Array.from({ length: 40 }, (_, n) => turn(n)).flat()];
  await session.append(events);
  const options = { budget: tight, policy, tools: [{ name: "read_file", input_schema: { type: "object" } }] };
  const context = await d.client.projectTranscript(events, anthropic, options);
  const same = await session.assemble(anthropic, { ...options, preview: true });
  assert.equal(context.hash, same.hash);
  assert.deepEqual(context.requestParams(), same.requestParams());
  assert.ok(context.header.budget!.projectedTokens < context.header.budget!.rawTokens / 2n);
  await assert.rejects(d.client.projectTranscript([], anthropic), InvalidArgumentError);
  await assert.rejects(d.client.projectTranscript(["text"] as never, anthropic), TypeError);
  await assert.rejects(d.client.projectTranscript(events, anthropic, { tools: options.tools }), TypeError);
});

test("hooks decide on compactions", { skip }, async () => {
  const session = d.client.session("hooks");
  await fill(session, 6);
  const stop = new AbortController();
  let asked = 0;
  const notified = new Promise<void>((resolve) => {
    void d.client
      .runHooks({
        sessionIds: ["hooks"],
        signal: stop.signal,
        preCompact: () => (++asked === 1 ? { decision: "block", reason: "not now" } : undefined),
        postCompact: () => resolve(),
      })
      .catch(() => {});
  });
  const compact = () => session.compact({ strategy: "mask", keepLastTurns: 1 });
  let vetoed = await compact();
  while (asked === 0) {
    await session.undoCompaction(); // until the subscription has arrived
    vetoed = await compact();
  }
  assert.equal(vetoed.outcome, "vetoed");
  assert.match(vetoed.detail, /not now/);
  assert.equal((await compact()).outcome, "compacted");
  await notified;
  stop.abort();
  const failing = d.client.runHooks({
    sessionIds: ["hooks"],
    preCompact: () => {
      throw new RangeError("broken");
    },
  });
  let failed: unknown;
  failing.catch((err: unknown) => (failed = err));
  while (failed === undefined) {
    await session.undoCompaction();
    await compact();
  }
  assert.ok(failed instanceof RangeError);
});

test("a runtime writes summaries", { skip }, async () => {
  const settings = join(await mkdtemp(join(tmpdir(), "contextd-")), "contextd.yaml");
  await writeFile(settings, "summarizers: {own: {type: pull}}\ndefault_summarizer: own\n");
  const own = await startSidecar({ binary: binary(), args: ["--store", "memory", "--config", settings] });
  const client = new Client(own.address);
  const stop = new AbortController();
  try {
    const session = client.session("s");
    await fill(session, 6);
    let tries = 0;
    const working = client.runSummaries({
      workerId: "w",
      signal: stop.signal,
      write: (task) => {
        assert.match(task.prompt, /a line of result/);
        if (++tries === 1) throw new Error("no model yet");
        return "Six files were read.";
      },
    });
    const ended = assert.rejects(working, { code: "CANCELLED" });
    let text: string | undefined;
    while (tries < 2) text = (await session.compact({ strategy: "summarize", keepLastTurns: 1 })).summary?.text;
    assert.match(text ?? "", /Six files were read\./);
    stop.abort();
    await ended;
  } finally {
    client.close();
    await own.stop();
  }
});

test("a watch goes on where it broke, and not with another log", { skip }, async () => {
  const data = await mkdtemp(join(tmpdir(), "contextd-"));
  const start = (listen: string) => startSidecar({ binary: binary(), args: ["--data-dir", data, "--listen", listen] });
  let own = await start("127.0.0.1:0");
  const client = new Client(own.address);
  try {
    const session = client.session("s");
    const again = async () => {
      await session.append(user("hi"));
      await session.assemble(anthropic, { budget: { maxTokens: 20_000 } });
    };
    const restart = async () => {
      await own.stop();
      own = await start(own.address);
    };
    await again();
    const watched = client.watch({ after: [{ sessionId: "s", number: 0n }] });
    const number = async () => (await watched.next()).value?.number;
    assert.equal(await number(), 1n);
    await restart();
    await again();
    assert.equal(await number(), 2n);
    await session.delete();
    await session.append(user("another with its id"));
    await restart();
    await assert.rejects(watched.next(), LogLostError);
  } finally {
    client.close();
    await own.stop();
  }
});

test("tools take room", { skip }, async () => {
  const session = d.client.session("tools");
  await session.append(user("hi"));
  const tools = [{ name: "read", description: "Reads a file.", input_schema: { type: "object" } }];
  const counted = await d.client.countTokens({ tools, tokenizer: "o200k_base", format: Format.ANTHROPIC });
  assert.ok(counted > 10);
  const budget = { maxTokens: 20_000, tokenizer: "o200k_base", overheadTokens: 7 };
  const room = async (given: object) => Number((await session.assemble(anthropic, { budget, ...given })).header.budget!.targetTokens);
  for (const _ of [1, 2]) {
    const taken = (await room({})) - (await room({ tools }));
    assert.ok(taken > 0 && taken <= counted, `${taken} of ${counted}`);
  }
  await assert.rejects(session.assemble(anthropic, { tools }), { name: "TypeError", message: /budget/ });
});
