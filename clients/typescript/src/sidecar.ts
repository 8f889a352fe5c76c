import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { checkNone, checkOptions, wrong } from "./members.js";

/** A daemon started by this process. */
export interface Sidecar {
  /** Its address, for Client. */
  readonly address: string;
  /** Stops the daemon, if it was started here, and waits for its orderly end. */
  stop(): Promise<void>;
}

/** How to start a daemon. */
export interface SidecarOptions {
  /** The program. Absent: CONTEXTD_BINARY, or contextd of PATH. */
  binary?: string;
  /** Flags of `contextd serve` besides the address. Absent: a store in memory. */
  args?: readonly string[];
}

/**
 * Finds the daemon that CONTEXTD_ADDR names, or starts one on a free port of the
 * loopback. It is ready when this returns.
 */
export async function startSidecar(options: SidecarOptions = {}): Promise<Sidecar> {
  const { args: flags = ["--store", "memory"], binary: named, ...others } = checkOptions(options);
  checkNone("startSidecar", others);
  if (!Array.isArray(flags)) throw wrong("args", "a list of flags", flags);
  if (named !== undefined && typeof named !== "string") throw wrong("binary", "the path of a program", named);
  const known = process.env["CONTEXTD_ADDR"];
  if (known && !named) return { address: known, stop: async () => {} };
  const binary = named ?? (process.env["CONTEXTD_BINARY"] || "contextd");
  const args = ["serve", "--listen", "127.0.0.1:0", "--log-format", "json", ...flags];
  const child = spawn(binary, args, { stdio: ["ignore", "ignore", "pipe"] });
  const exited = once(child, "exit");
  exited.catch(() => {}); // listening reports a failed spawn
  const address = await listening(child, binary);
  return {
    address,
    stop: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill("SIGTERM");
      await exited;
    },
  };
}

/** Reads the daemon's log up to the line with the address. */
function listening(child: ChildProcess, binary: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const said: string[] = [];
    child.once("error", (cause) => reject(new Error(`${binary} cannot be started: set CONTEXTD_BINARY to the program, or put it into PATH (${cause.message})`, { cause })));
    child.once("exit", (code) => reject(new Error(`${binary} ended with ${code}: ${said.join("\n")}`)));
    // Read to the end, so that the daemon never blocks on a full pipe.
    createInterface({ input: child.stderr! }).on("line", (line) => {
      if (said.length < 100) said.push(line);
      try {
        const entry = JSON.parse(line) as { msg?: string; address?: string };
        if (entry.msg === "listening" && entry.address) resolve(entry.address);
      } catch {
        // Not a line of the log.
      }
    });
  });
}
