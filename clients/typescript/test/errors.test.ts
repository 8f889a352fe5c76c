import assert from "node:assert/strict";
import { test } from "node:test";
import { anthropic } from "../src/anthropic/index.js";
import * as contextd from "../src/index.js";
import { opening } from "./conversation.js";
import { daemon, noDaemon } from "./daemon.js";

const d = daemon("--max-batch-events", "50");

/** What a call throws, as an error of a class. */
async function thrown<T extends contextd.ContextdError>(
  call: Promise<unknown>,
  type: new (...args: never[]) => T,
): Promise<T> {
  const err = await call.then(
    () => assert.fail("nothing was thrown"),
    (e: unknown) => e,
  );
  assert.ok(err instanceof type, `${err} is no ${type.name}`);
  assert.equal(err.name, type.name);
  assert.notEqual(err.message, "");
  return err;
}

test("every documented error has its class and its details", { skip: noDaemon }, async (t) => {
  const session = d.client.session("errors");
  await session.append(contextd.user("hello", { eventId: "e1" }));

  await t.test("a malformed event names its field", async () => {
    const bad = contextd.assistant([contextd.toolCall("c1", "bash", new Uint8Array([0x7b, 0xff]))]);
    const err = await thrown(session.append(bad), contextd.InvalidArgumentError);
    assert.equal(err.code, "INVALID_ARGUMENT");
    assert.equal(err.reason, "INVALID_FIELD");
    assert.equal(err.field, "events[0].message.blocks[0].tool_call.arguments_json");
  });

  await t.test("an event id that is taken", async () => {
    const err = await thrown(
      session.append(contextd.user("something else", { eventId: "e1" })),
      contextd.AlreadyExistsError,
    );
    assert.equal(err.reason, "EVENT_ID_CONFLICT");
    assert.equal(err.field, "events[0].event_id");
    assert.equal(err.metadata["seq"], "1");
  });

  await t.test("the same event again is a duplicate and no error", async () => {
    const { receipts } = await session.append(contextd.user("hello", { eventId: "e1" }));
    assert.deepEqual(
      receipts.map(({ seq, duplicate }) => ({ seq, duplicate })),
      [{ seq: 1n, duplicate: true }],
    );
  });

  await t.test("somebody else appended", async () => {
    const err = await thrown(session.append(contextd.user("x"), { expectedHead: 0n }), contextd.HeadMismatchError);
    assert.equal(err.code, "ABORTED");
    assert.equal(err.headSeq, 1n);
  });

  await t.test("an unknown session", async () => {
    const err = await thrown(d.client.session("nobody").get(), contextd.NotFoundError);
    assert.equal(err.reason, "SESSION_NOT_FOUND");
    assert.equal(err.resource?.name, "nobody");
    await thrown(d.client.session("nobody").events().next(), contextd.NotFoundError);
    await thrown(session.events({ fromSeq: 3n, toSeq: 2n }).next(), contextd.InvalidArgumentError);
  });

  await t.test("a session that is there", async () => {
    const err = await thrown(d.client.createSession("errors"), contextd.AlreadyExistsError);
    assert.equal(err.reason, "SESSION_EXISTS");
  });

  await t.test("a context that cannot fit says what is too large", async () => {
    const err = await thrown(
      session.assemble(anthropic, { budget: { maxTokens: 2, safetyMargin: 0, tokenizer: "o200k_base" } }),
      contextd.BudgetExceededError,
    );
    assert.equal(err.code, "FAILED_PRECONDITION");
    assert.equal(err.targetTokens, 2n);
    assert.ok(err.neededTokens > 2n);
    assert.ok(err.parts.length > 0 && err.parts[0]!.seq === 1n && err.parts[0]!.what !== "", JSON.stringify(err.metadata));
  });

  await t.test("an injection over its reserve", async () => {
    const injections = [{ name: "long", blocks: [contextd.text("word ".repeat(100))], reserveTokens: 5n }];
    const err = await thrown(
      session.assemble(anthropic, { budget: { maxTokens: 1000 }, injections }),
      contextd.InjectionOverReserveError,
    );
    assert.equal(err.injection, "long");
    assert.equal(err.reserveTokens, 5);
    assert.ok(err.tokens >= 100);
  });

  await t.test("too much at once", async () => {
    const many = Array.from({ length: 51 }, () => contextd.user("x"));
    const err = await thrown(session.append(many), contextd.LimitExceededError);
    assert.equal(err.code, "RESOURCE_EXHAUSTED");
    assert.equal(err.metadata["limit"], "50");
  });

  await t.test("a call that takes too long", async () => {
    const err = await thrown(session.append(contextd.user("x"), { signal: AbortSignal.abort() }), contextd.ContextdError);
    assert.equal(err.code, "CANCELLED");
    assert.equal(err.reason, "TRANSPORT");
  });

  await t.test("after errors the session is what it was", async () => {
    assert.equal((await session.get()).headSeq, 1n);
    assert.equal((await session.assemble(anthropic)).messages().length, 1);
  });
});

test("no daemon is UNAVAILABLE", { skip: noDaemon }, async () => {
  const client = new contextd.Client("127.0.0.1:1", { patienceMs: 0 });
  const err = await thrown(client.session("s").append(opening), contextd.UnavailableError);
  assert.equal(err.reason, "TRANSPORT");
  client.close();
});
