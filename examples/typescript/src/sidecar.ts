import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

export interface Sidecar {
  address: string;
  stop(): Promise<void>;
}

/** The daemon of an address or of CONTEXTD_ADDR, or one that this process starts. */
export async function findOrStart(address = process.env["CONTEXTD_ADDR"]): Promise<Sidecar> {
  if (address) return { address, stop: async () => {} };
  const binary = process.env["CONTEXTD_BINARY"] || "contextd";
  const args = ["serve", "--store", "memory", "--listen", "127.0.0.1:0", "--log-format", "json"];
  const child = spawn(binary, args, { stdio: ["ignore", "ignore", "pipe"] });
  const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  const stop = async () => {
    child.kill("SIGTERM");
    await exited;
  };
  const failed = once(child, "error").then(([err]) => Promise.reject(err));
  const ended = exited.then(() => Promise.reject(new Error(`${binary} ended before it listened`)));
  const listening = new Promise<string>((resolve) => {
    // Read to its end, so that the daemon never waits for its log.
    createInterface({ input: child.stderr }).on("line", (line) => {
      const entry = line.startsWith("{") ? (JSON.parse(line) as { msg?: string; address?: string }) : {};
      if (entry.msg === "listening" && entry.address) resolve(entry.address);
    });
  });
  failed.catch(() => {});
  ended.catch(() => {});
  return { address: await Promise.race([listening, failed, ended]), stop };
}
