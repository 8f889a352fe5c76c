import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type Http2Session } from "node:http2";
import type { AddressInfo } from "node:net";
import { mock, test } from "node:test";
import { Code, ConnectError, type ServiceImpl } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { toError } from "../src/errors.js";
import { ContextService } from "../src/gen/contextd/v1/context_service_pb.js";
import type { LogMark } from "../src/gen/contextd/v1/session_pb.js";
import { ErrorInfoSchema, RetryInfoSchema } from "../src/gen/google/rpc/error_details_pb.js";
import * as contextd from "../src/index.js";
import { pause } from "../src/patience.js";
import { binary, noDaemon } from "./daemon.js";

const line = new TextEncoder().encode('{"a":1.0}');

/** Refuses a call as the daemon does. */
function refusal(wait: number | undefined): ConnectError {
  const err = new ConnectError("not now", Code.Unavailable);
  err.details.push({ desc: ErrorInfoSchema, value: { reason: "DRAINING", domain: "contextd" } });
  if (wait !== undefined) {
    const retryDelay = { seconds: BigInt(Math.floor(wait / 1000)), nanos: (wait % 1000) * 1e6 };
    err.details.push({ desc: RetryInfoSchema, value: { retryDelay } });
  }
  return err;
}

/** The chain of the log of Busy after an event. */
const chain = (seq: bigint) => `sha256:${seq.toString().padStart(64, "0")}`;

const shown = (mark: LogMark | undefined) => mark && `${mark.incarnation} ${mark.headSeq} ${mark.chainHead}`;

/** Refuses the first calls, each with the next of waits, and keeps what was asked. */
class Busy {
  waits: (number | undefined)[] = [];
  readonly appended: { eventId: string }[][] = [];
  readonly read: bigint[] = [];
  readonly known: (string | undefined)[] = [];
  readonly keys: string[] = [];
  calls = 0;
  /** What happens before the first call is answered. */
  first: () => void = () => {};
  session: Http2Session | undefined;

  enter(): void {
    if (++this.calls === 1) this.first();
    if (this.waits.length > 0) throw refusal(this.waits.shift());
  }

  readonly service: Partial<ServiceImpl<typeof ContextService>> = {
    appendEvents: ({ events, known }) => {
      this.appended.push(events);
      this.known.push(shown(known));
      this.enter();
      return { lastSeq: 7n, mark: { incarnation: "i", headSeq: 7n, chainHead: chain(7n) } };
    },
    recordModelCall: ({ idempotencyKey }) => {
      this.keys.push(idempotencyKey);
      this.enter();
      return { calibration: 2 };
    },
    assembleContext: async function* (this: Busy) {
      const contextHash = contextd.hashOf([line]);
      const header = { contextHash, prefixHash: contextHash, messageCount: 1, prefixMessages: 1 };
      yield { part: { case: "header" as const, value: header } };
      yield { part: { case: "chunk" as const, value: { messages: [{ json: line }] } } };
      this.enter();
      yield { part: { case: "trailer" as const, value: { contextHash, messageCount: 1 } } };
    }.bind(this),
    readEvents: async function* (this: Busy, { fromSeq, known }: { fromSeq: bigint; known?: LogMark | undefined }) {
      this.read.push(fromSeq);
      this.known.push(shown(known));
      const from = fromSeq || 1n;
      yield { events: [{ seq: from }, { seq: from + 1n }], incarnation: "i", chainHead: chain(from + 1n) };
      this.enter();
    }.bind(this),
  };
}

/** Time that passes only where a client waits. */
function clock(): { waited: number[]; sleep: (ms: number) => Promise<void>; stop: () => void } {
  const waited: number[] = [];
  const { mock: mocked } = mock.method(performance, "now", () => waited.reduce((a, b) => a + b, 0));
  return { waited, sleep: async (ms) => void waited.push(ms), stop: () => mocked.restore() };
}

/** Uses a client of a server that refuses; its waits are noted and not waited. */
async function behind<T>(
  busy: Busy,
  options: contextd.RetryOptions,
  use: (client: contextd.Client) => Promise<T>,
): Promise<{ answer: T | unknown; waited: number[] }> {
  const server = createServer(connectNodeAdapter({ routes: (r) => r.service(ContextService, busy.service) }));
  server.on("session", (session) => (busy.session = session));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { waited, sleep, stop } = clock();
  let client: contextd.Client | undefined;
  try {
    client = new contextd.Client(`127.0.0.1:${(server.address() as AddressInfo).port}`, { sleep, ...options });
    return { answer: await use(client).catch((err: unknown) => err), waited };
  } finally {
    stop();
    client?.close();
    server.close();
    await once(server, "close");
  }
}

const append = (client: contextd.Client) => client.session("s").append(contextd.user("hi"));

test("waits as long as the daemon says, and appends the same event", async () => {
  const busy = new Busy();
  busy.waits = [1500, 250, 28_000];
  const { answer, waited } = await behind(busy, {}, append);
  assert.equal((answer as { lastSeq: bigint }).lastSeq, 7n);
  assert.deepEqual(waited, [1500, 250, 28_000]);
  const ids = busy.appended.map((events) => events[0]!.eventId);
  assert.equal(ids.length, 4);
  assert.equal(new Set(ids).size, 1, "a repetition would append twice");
  assert.notEqual(ids[0], "");
});

for (const seq of [0n, 7n]) {
  test(`reverts compaction ${seq} ${seq ? "" : "not "}again where no answer came`, async () => {
    const { waited, sleep, stop } = clock();
    const client = new contextd.Client("127.0.0.1:1", { sleep });
    try {
      await assert.rejects(client.session("s").undoCompaction(seq), contextd.ContextdError);
      assert.equal(waited.length > 0, seq > 0n, "a repetition might revert another compaction");
    } finally {
      stop();
      client.close();
    }
  });
}

test("a report that is repeated has one key", async () => {
  const busy = new Busy();
  busy.waits = [1, 2];
  const { answer } = await behind(busy, {}, async (client) => {
    const report = (call: contextd.ModelCall) => client.session("s").recordModelCall({ header: { projectionId: "p" } }, call);
    await report({ inputTokens: 9 });
    await report({ inputTokens: 9 });
    return await report({ idempotencyKey: "own" });
  });
  assert.equal(answer, 2);
  assert.equal(new Set(busy.keys.slice(0, 3)).size, 1, "a repetition would count twice");
  assert.equal(new Set(busy.keys).size, 3);
  assert.ok(!busy.keys.includes(""));
  assert.equal(busy.keys[4], "own");
});

for (const { waits, waited, calls, options = {} } of [
  { waits: [10_000, 10_000, 10_000, 10_000], waited: [10_000, 10_000, 10_000], calls: 4 },
  { waits: [1, 1, 1], waited: [1], calls: 2, options: { patienceMs: 1.5 } },
  { waits: [1], waited: [], calls: 1, options: { patienceMs: 0 } },
  { waits: [30_001], waited: [], calls: 1 },
  { waits: [61_000, 1], waited: [61_000], calls: 2, options: { patienceMs: 61_000 } },
  { waits: [undefined], waited: [], calls: 1 },
]) {
  test(`gives up after ${calls} of the refusals ${waits} with ${JSON.stringify(options)}`, async () => {
    const busy = new Busy();
    busy.waits = [...waits];
    const got = await behind(busy, options, append);
    assert.deepEqual(got.waited, waited);
    assert.equal(busy.calls, calls);
    assert.ok(got.answer instanceof contextd.UnavailableError, String(got.answer));
    assert.equal(got.answer.reason, "DRAINING");
    assert.equal(got.answer.retryAfterMs, waits[calls - 1]);
  });
}

test("a connection that breaks is tried again, and the same event appended", async () => {
  const busy = new Busy();
  busy.first = () => busy.session!.destroy();
  const { answer, waited } = await behind(busy, {}, append);
  assert.equal((answer as { lastSeq: bigint }).lastSeq, 7n, String(answer));
  assert.deepEqual(waited, [100]);
  assert.equal(busy.appended[0]![0]!.eventId, busy.appended[1]![0]!.eventId);
});

test("a connection that breaks in an assembly is tried again", async () => {
  const busy = new Busy();
  busy.first = () => busy.session!.destroy();
  const { answer, waited } = await behind(busy, {}, (client) => client.session("s").assemble(contextd.own));
  assert.deepEqual((answer as contextd.OwnContext).lines, [line], String(answer));
  assert.deepEqual(waited, [100]);
});

test("a client that is closed tries no more", async () => {
  const busy = new Busy();
  const { answer, waited } = await behind(busy, {}, async (client) => {
    busy.first = () => client.close();
    return await append(client);
  });
  assert.ok(answer instanceof contextd.ContextdError, String(answer));
  assert.deepEqual(waited, []);
  assert.equal(busy.calls, 1);
});

test("an assembly that was cut off begins again", async () => {
  const busy = new Busy();
  busy.waits = [2, 3];
  const { answer, waited } = await behind(busy, {}, (client) => client.session("s").assemble(contextd.own));
  assert.deepEqual((answer as contextd.OwnContext).lines, [line]);
  assert.deepEqual(waited, [2, 3]);
});

test("the newest mark goes with the next append", async () => {
  const busy = new Busy();
  await behind(busy, {}, async (client) => {
    const session = client.session("s");
    await session.append(contextd.user("one"));
    await session.append(contextd.user("two"));
  });
  assert.deepEqual(busy.known, [undefined, `i 7 ${chain(7n)}`]);
});

test("a log goes on where it broke", async () => {
  const read = (range: { fromSeq?: bigint; toSeq?: bigint }) => async (client: contextd.Client) => {
    const seqs: bigint[] = [];
    for await (const { seq } of client.session("s").events(range)) seqs.push(seq);
    return seqs;
  };
  const busy = new Busy();
  busy.waits = [20_000, 25_000]; // the patience begins anew with what came
  const whole = await behind(busy, {}, read({ fromSeq: 3n }));
  assert.deepEqual(whole, { answer: [3n, 4n, 5n, 6n, 7n, 8n], waited: [20_000, 25_000] });
  assert.deepEqual(busy.read, [3n, 5n, 7n]);
  assert.deepEqual(busy.known, [undefined, `i 4 ${chain(4n)}`, `i 6 ${chain(6n)}`]);
  busy.waits = [6];
  const part = await behind(busy, {}, read({ toSeq: 2n }));
  assert.deepEqual(part, { answer: [1n, 2n], waited: [] }, "nothing was left to ask for");
});

test("waits ever longer for a daemon that is not there", async () => {
  const { waited, sleep, stop } = clock();
  const client = new contextd.Client("127.0.0.1:1", { patienceMs: 8000, sleep });
  const said = /^no daemon answers at 127\.0\.0\.1:1 \(.*ECONNREFUSED.*\): start one with "contextd serve", or set CONTEXTD_ADDR$/;
  await assert.rejects(append(client), { name: "UnavailableError", message: said });
  stop();
  assert.deepEqual(waited, [100, 200, 400, 800, 1600, 2000, 2000]);
  client.close();
});

test("waits for a socket that is not there yet", { skip: process.platform === "win32" }, async () => {
  const { waited, sleep, stop } = clock();
  const client = new contextd.Client("unix:///nonexistent/c.sock", { patienceMs: 1000, sleep });
  const said = /^no daemon answers at unix:\/\/\/nonexistent\/c\.sock \(connect ENOENT .*\): start one with "contextd serve"/;
  await assert.rejects(append(client), { name: "UnavailableError", code: "UNAVAILABLE", message: said });
  stop();
  assert.deepEqual(waited, [100, 200, 400]);
  client.close();
});

test("a socket that this user may not use is no daemon that is not there", () => {
  const said = (cause: string): string => String(toError(new ConnectError(cause, Code.Unavailable), "unix:///c.sock"));
  assert.match(said("connect EACCES /c.sock"), /: no permission to connect to unix:\/\/\/c\.sock \(connect EACCES/);
  assert.match(said("connect ENOENT /c.sock"), /: no daemon answers at unix:\/\/\/c\.sock \(connect ENOENT/);
});

test("TLS on one side alone is no daemon that is not there", () => {
  const said = (cause: string, code: Code): string => String(toError(new ConnectError(cause, code), "127.0.0.1:7"));
  for (const [cause, code] of [
    ["http/2 stream closed with error code CANCEL (0x8)", Code.Canceled],
    ["unable to verify the first certificate", Code.Unknown],
    ["0:error:0A00010B:SSL routines:ssl3_get_record:wrong version number:../record.c:350:", Code.Internal],
  ] as const) {
    assert.ok(said(cause, code).includes(`: no connection with 127.0.0.1:7 (${cause}): if the daemon there speaks TLS, CONTEXTD_CA`), said(cause, code));
  }
});

test("a refused certificate is no matter of CONTEXTD_CA", () => {
  const cause = "0:error:0A00045C:SSL routines:ssl3_read_bytes:tlsv13 alert certificate required:../rec.c:1601:SSL alert number 116";
  const said = String(toError(new ConnectError(cause, Code.Internal), "127.0.0.1:7"));
  assert.ok(said.includes(`: no connection with 127.0.0.1:7 (${cause}): CONTEXTD_CERT and CONTEXTD_KEY must be`), said);
});

/** For how long a client of the environment waits at least, by the last refusal that it bears. */
async function bears(patience: string, ms: number): Promise<boolean> {
  process.env["CONTEXTD_PATIENCE"] = patience;
  try {
    const busy = new Busy();
    busy.waits = [ms];
    return !((await behind(busy, {}, append)).answer instanceof Error);
  } finally {
    delete process.env["CONTEXTD_PATIENCE"];
  }
}

test("the environment says how patient a client is", async () => {
  for (const [text, ms] of [["", 30_000], ["2", 2000], ["0.5", 500], ["1m30s", 90_000], ["1.5h250ms", 5_400_250]] as const) {
    assert.deepEqual([await bears(text, ms), await bears(text, ms + 1)], [true, false], text);
  }
  for (const text of ["soon", "-1s", "1d", "inf", " "]) {
    await assert.rejects(bears(text, 1), { name: "TypeError", message: /CONTEXTD_PATIENCE/ }, text);
  }
  for (const patienceMs of [-1, Number.NaN, "2" as unknown as number]) {
    assert.throws(() => new contextd.Client("127.0.0.1:1", { patienceMs }), { name: "TypeError", message: /patienceMs/ });
  }
});

test("a signal ends the waiting", async () => {
  const busy = new Busy();
  busy.waits = [20_000];
  const stop = new AbortController();
  const sleep: NonNullable<contextd.RetryOptions["sleep"]> = async (ms, signal) => {
    const waiting = pause(ms, signal);
    stop.abort();
    await waiting;
  };
  const { answer } = await behind(busy, { sleep }, (client) =>
    client.session("s").append(contextd.user("hi"), { signal: stop.signal }),
  );
  assert.equal((answer as contextd.ContextdError).code, "CANCELLED");
  assert.equal(busy.calls, 1);
});

test("a daemon that shuts down says when to come back", { skip: noDaemon }, async () => {
  const sidecar = await contextd.startSidecar({ binary: binary(), args: ["--store", "memory"] });
  const client = new contextd.Client(sidecar.address, { patienceMs: 0 });
  try {
    await client.session("s").append(contextd.user("hi"));
    const follow = client.stub.readEvents({ sessionId: "s", follow: true })[Symbol.asyncIterator]();
    assert.equal((await follow.next()).value.events[0].seq, 1n);
    const stopped = sidecar.stop();
    const err = toError(await follow.next().catch((e: unknown) => e), sidecar.address);
    await stopped;
    assert.ok(err instanceof contextd.UnavailableError, String(err));
    assert.equal(err.reason, "DRAINING");
    assert.equal(err.retryAfterMs, 1000);
  } finally {
    client.close();
    await sidecar.stop();
  }
});
