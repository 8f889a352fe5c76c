import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { Delta } from "../src/delta.js";
import { HashMismatchError, hashOf } from "../src/index.js";
import { type AssembleContextResponse, AssembleContextResponseSchema } from "../src/proto.js";

const bytes = (line: string) => new TextEncoder().encode(line);

interface Answer {
  lines: string[];
  skipped?: number;
  prefix?: number;
  cut?: boolean;
  flip?: boolean;
}

async function* answer(a: Answer): AsyncGenerator<AssembleContextResponse> {
  const lines = a.lines.map(bytes);
  const skipped = a.skipped ?? 0;
  const contextHash = hashOf(lines);
  const header = {
    messageCount: lines.length,
    skippedMessages: skipped,
    prefixMessages: a.prefix ?? lines.length,
    contextHash,
  };
  yield create(AssembleContextResponseSchema, { part: { case: "header", value: header } });
  const messages = lines.slice(skipped).map((json, i) => ({ json, index: skipped + i }));
  if (a.flip) messages[0]!.json = bytes(new TextDecoder().decode(messages[0]!.json).replace("a", "b"));
  if (messages.length > 0) {
    yield create(AssembleContextResponseSchema, { part: { case: "chunk", value: { messages } } });
  }
  if (a.cut) return;
  yield create(AssembleContextResponseSchema, { part: { case: "trailer", value: { contextHash, messageCount: lines.length } } });
}

test("a request says as much as stays without injections, by the hash of the bytes held", async () => {
  const delta = new Delta();
  assert.deepEqual(delta.have(), { messageCount: 0, prefixHash: "" });
  await delta.receive(answer({ lines: ['"a"', '"b"', '"c and an injection"'], prefix: 2 }));
  assert.deepEqual(delta.have(), { messageCount: 2, prefixHash: hashOf(['"a"', '"b"'].map(bytes)) });
});

test("what was sent replaces what is held after the skipped messages", async () => {
  const delta = new Delta();
  await delta.receive(answer({ lines: ['"a"', '"b"', '"c"'] }));
  const got = await delta.receive(answer({ lines: ['"a"', '"x"'], skipped: 1 }));
  assert.deepEqual(got.lines, ['"a"', '"x"'].map(bytes));
  assert.equal(got.sent, 1);
});

for (const [what, spoil] of [
  ["a byte that changed on the way", { flip: true }],
  ["a stream that ends before its trailer", { cut: true }],
] as const) {
  test(`${what} is an error, and the next answer has all messages`, async () => {
    const delta = new Delta();
    await delta.receive(answer({ lines: ['"a"'] }));
    await assert.rejects(delta.receive(answer({ lines: ['"a"', '"aa"'], skipped: 1, ...spoil })), (err) =>
      "flip" in spoil ? err instanceof HashMismatchError : /cut off/.test(String(err)),
    );
    assert.deepEqual(delta.have(), { messageCount: 0, prefixHash: "" });
    const got = await delta.receive(answer({ lines: ['"a"', '"aa"'] }));
    assert.equal(got.sent, 2);
  });
}

test("a stream that breaks is an error, and what was held stays", async () => {
  const delta = new Delta();
  await delta.receive(answer({ lines: ['"a"'] }));
  const before = delta.have();
  const broken = async function* () {
    yield* answer({ lines: ['"a"', '"aa"'], skipped: 1, cut: true });
    throw new RangeError("broken");
  };
  await assert.rejects(delta.receive(broken()), RangeError);
  assert.deepEqual(delta.have(), before);
  const got = await delta.receive(answer({ lines: ['"a"', '"aa"'], skipped: 1 }));
  assert.equal(got.lines.length, 2);
});
