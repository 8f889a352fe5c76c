import { createHash } from "node:crypto";
import { wrong } from "./members.js";

/**
 * The hash of rendered messages, as the API names it: "sha256:" and 64 hex digits over
 * each message's bytes and a line feed.
 */
export function hashOf(lines: Iterable<Uint8Array>): string {
  const hash = createHash("sha256");
  for (const line of lines) {
    if (!(line instanceof Uint8Array)) throw wrong("lines", "a list of Uint8Arrays", lines);
    hash.update(line);
    hash.update("\n");
  }
  return "sha256:" + hash.digest("hex");
}
