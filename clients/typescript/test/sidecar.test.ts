import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { Client, own, startSidecar, UnavailableError, user } from "../src/index.js";
import { binary, noDaemon } from "./daemon.js";

test("a daemon that is started serves until it is stopped, and keeps what was appended", { skip: noDaemon }, async () => {
  const dir = mkdtempSync(join(tmpdir(), "contextd-"));
  const start = () => startSidecar({ binary: binary(), args: ["--data-dir", dir] });
  try {
    const first = await start();
    const client = new Client(first.address);
    await client.session("s").append(user("hello"));
    await first.stop();
    await first.stop(); // twice does no harm
    await assert.rejects(client.session("s").append(user("gone")), UnavailableError);
    client.close();

    const second = await start();
    using again = new Client(second.address);
    const context = await again.session("s").assemble(own);
    assert.deepEqual(context.messages(), [{ role: "user", blocks: [{ text: { text: "hello" } }] }]);
    await second.stop();
  } finally {
    rmSync(dir, { recursive: true });
  }
});

test("a client takes the path of a unix socket", { skip: noDaemon || process.platform === "win32" }, async () => {
  const dir = mkdtempSync(join(tmpdir(), "contextd-"));
  const path = join(dir, "s");
  const sidecar = await startSidecar({ binary: binary(), args: ["--store", "memory", "--unix-socket", path] });
  const client = new Client(`unix://${path}`);
  try {
    const { lastSeq } = await client.session("s").append(user("hello"));
    assert.equal(lastSeq, 1n);
  } finally {
    client.close();
    await sidecar.stop();
    rmSync(dir, { recursive: true });
  }
});

test("an empty address is none", { skip: noDaemon }, async () => {
  const sidecar = await startSidecar({ binary: binary(), args: ["--store", "memory"] });
  process.env["CONTEXTD_ADDR"] = sidecar.address;
  const client = new Client("");
  try {
    assert.equal((await client.session("s").append(user("hello"))).lastSeq, 1n);
  } finally {
    delete process.env["CONTEXTD_ADDR"];
    client.close();
    await sidecar.stop();
  }
});

test("a daemon that is known is not started", async () => {
  process.env["CONTEXTD_ADDR"] = "127.0.0.1:9";
  try {
    const sidecar = await startSidecar();
    assert.equal(sidecar.address, "127.0.0.1:9");
    await sidecar.stop();
  } finally {
    delete process.env["CONTEXTD_ADDR"];
  }
});

for (const [what, program] of [
  ["is not there", "/nonexistent/contextd"],
  ["ends at once", process.execPath],
] as const) {
  test(`a program that ${what} is an error`, async () => {
    await assert.rejects(startSidecar({ binary: program, args: [] }));
  });
}
