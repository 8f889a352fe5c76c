import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Client, ContextdError, type Credentials, own, type Sidecar, startSidecar, user } from "../src/index.js";
import { binary, noDaemon } from "./daemon.js";

const skip = noDaemon || (spawnSync("openssl", ["version"]).error ? "no openssl to make certificates with" : false);
let folder: string;
let daemon: Sidecar | undefined;

const file = (name: string) => join(folder, name);

/** Writes NAME.pem and NAME.key: an authority, or what one signed. */
function issue(name: string, ...signed: string[]): void {
  const kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1"];
  const files = ["-keyout", `${name}.key`, "-out", `${name}.pem`, "-subj", `/CN=${name}`];
  execFileSync("openssl", ["req", "-x509", ...kind, ...files, ...signed], { cwd: folder, stdio: "pipe" });
}

before(async () => {
  if (skip) return;
  folder = mkdtempSync(join(tmpdir(), "contextd-"));
  issue("ca");
  issue("stranger");
  const byCA = ["-CA", "ca.pem", "-CAkey", "ca.key", "-addext"];
  issue("daemon", ...byCA, "subjectAltName=IP:127.0.0.1");
  issue("client", ...byCA, "subjectAltName=DNS:client");
  const contextd = binary();
  const token = ["token", "--name", "ci", "--tenant", "a", "--out", "ci.token"];
  writeFileSync(file("tokens.yaml"), execFileSync(contextd, token, { cwd: folder }));
  const tls = ["--tls-cert", file("daemon.pem"), "--tls-key", file("daemon.key"), "--tls-client-ca", file("ca.pem")];
  const callers = ["--auth-tokens", file("tokens.yaml"), "--tls-client-tenants", "{client: a}"];
  daemon = await startSidecar({ binary: contextd, args: ["--store", "memory", ...tls, ...callers] });
});

after(async () => {
  await daemon?.stop();
  if (folder) rmSync(folder, { recursive: true });
});

/** Uses a client of the daemon, with these files. */
async function as<T>(credentials: Credentials, use: (client: Client) => Promise<T>): Promise<T> {
  const files = Object.fromEntries(Object.entries({ ca: "ca.pem", ...credentials }).map(([name, value]) => [name, file(value)]));
  const client = new Client(daemon!.address, { credentials: files, patienceMs: 0 });
  try {
    return await use(client);
  } finally {
    client.close();
  }
}

test("does not repeat what a file holds that is no token", async () => {
  const other = join(mkdtempSync(join(tmpdir(), "contextd-")), "tls.key");
  writeFileSync(other, "secret\nlines\n");
  const client = new Client("127.0.0.1:1", { credentials: { tokenFile: other }, patienceMs: 0 });
  await assert.rejects(client.session("s").get(), (e: Error) => e.message.endsWith(`tokenFile: ${other} must hold one line of ASCII, the token`));
  client.close();
  rmSync(join(other, ".."), { recursive: true });
});

for (const [name, proof] of Object.entries({
  "a token": { tokenFile: "ci.token" },
  "a certificate": { cert: "client.pem", key: "client.key" },
})) {
  test(`is let in by ${name}`, { skip }, async () => {
    await as(proof, async (client) => {
      const session = client.session(`by ${name}`.replaceAll(" ", "-"));
      await session.append(user("hello"));
      const context = await session.assemble(own, { budget: { maxTokens: 1000 } });
      assert.match(JSON.stringify(context.messages()), /hello/);
      const seqs = [];
      for await (const event of session.events()) seqs.push(event.seq);
      assert.deepEqual(seqs, [1n]);
    });
  });
}

test("takes what the environment says", { skip }, async () => {
  const names = { ADDR: daemon!.address, CA: file("ca.pem"), TOKEN_FILE: file("ci.token") };
  for (const [name, value] of Object.entries(names)) process.env[`CONTEXTD_${name}`] = value;
  const client = new Client();
  try {
    await client.session("environment").append(user("hello"));
  } finally {
    client.close();
    for (const name of Object.keys(names)) delete process.env[`CONTEXTD_${name}`];
  }
});

test("takes a token that is renewed", { skip }, async () => {
  writeFileSync(file("renewed.token"), "wrong");
  await as({ tokenFile: "renewed.token" }, async (client) => {
    const append = () => client.session("renewed").append(user("hello"));
    await assert.rejects(append, (err) => err instanceof ContextdError && err.code === "UNAUTHENTICATED");
    copyFileSync(file("ci.token"), file("renewed.token"));
    await append();
  });
});

test("is not let in without a proof, and trusts no other daemon", { skip }, async () => {
  const get = (client: Client) => client.session("s").get();
  await assert.rejects(as({}, get), (err) => err instanceof ContextdError && err.code === "UNAUTHENTICATED");
  await assert.rejects(as({ ca: "stranger.pem" }, get), /certificate/);
});

test("refuses what makes no sense, and a token that others could read", () => {
  for (const [address, credentials, message] of [
    ["example.com:7171", { tokenFile: "t" }, /could be read on the way/],
    ["10.0.0.1:7171", { tokenFile: "t" }, /could be read on the way/],
    ["127.0.0.1:7171", { cert: "c", key: "k" }, /there is no TLS/],
    ["127.0.0.1:7171", { ca: "ca", cert: "c" }, /both be set/],
    ["unix:///run/contextd.sock", { ca: "ca" }, /unix socket/],
  ] as const) {
    assert.throws(() => new Client(address, { credentials }), message);
  }
  for (const address of ["127.0.0.1:1", "localhost:1", "[::1]:1", "unix:///s"]) {
    new Client(address, { credentials: { tokenFile: "t" } }).close();
  }
});
