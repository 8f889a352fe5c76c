import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { resolve } from "node:path";
import { after, before } from "node:test";
import { Client, type Sidecar, startSidecar } from "../src/index.js";

const root = resolve(import.meta.dirname, "../../../..");

/** The daemon to test against: CONTEXTD_BINARY, or one that is built. */
export function binary(): string {
  const given = process.env["CONTEXTD_BINARY"];
  if (given) return given;
  const built = resolve(root, ".build/typescript/contextd");
  mkdirSync(resolve(built, ".."), { recursive: true });
  execFileSync("go", ["build", "-p", "2", "-o", built, "./cmd/contextd"], { cwd: root, stdio: "inherit" });
  return built;
}

/** Why there can be no daemon here, for the skip option of tests; false where there can. */
export const noDaemon: string | false =
  !process.env["CONTEXTD_BINARY"] && spawnSync("go", ["version"]).error
    ? "no go to build the daemon with, and CONTEXTD_BINARY is not set"
    : false;

/** A real daemon for the tests of a file, with a client for it. */
export function daemon(...args: string[]): { client: Client; address: string } {
  const held = {} as { client: Client; address: string };
  let sidecar: Sidecar | undefined;
  before(async () => {
    if (noDaemon) return;
    sidecar = await startSidecar({ binary: binary(), args: ["--store", "memory", ...args] });
    held.address = sidecar.address;
    held.client = new Client(sidecar.address);
  });
  after(async () => {
    held.client?.close();
    await sidecar?.stop();
  });
  return held;
}
