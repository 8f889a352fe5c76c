import type { AssembleContextResponse, ContextHeader, ContextTrailer } from "./gen/contextd/v1/assembly_pb.js";
import { HashMismatchError } from "./errors.js";
import { hashOf } from "./hash.js";

/** A received context: the bytes of its messages, and its header. */
export interface Received {
  header: ContextHeader;
  /** The bytes of each message, which the hashes cover. Never changed. */
  lines: readonly Uint8Array[];
  /** Whether the first line is a system prompt that the request has outside the messages. */
  system: boolean;
  /** How many messages came with this answer; the client had the others. */
  sent: number;
}

const nothing = { messageCount: 0, prefixHash: "" };

/**
 * Keeps the newest context between requests, so that the daemon sends only new messages. A new
 * context replaces it if its hash is right. If it is wrong, or parts of the answer are missing,
 * nothing is kept, so that the next request asks for all messages. A stream that breaks changes nothing.
 */
export class Delta {
  #lines: readonly Uint8Array[] = [];
  #system = false;
  #have = nothing;

  /** The `have` of the next request. */
  have(): { messageCount: number; prefixHash: string } {
    return { ...this.#have };
  }

  /** Reads one answer to a request that said have(). */
  async receive(parts: AsyncIterable<Pick<AssembleContextResponse, "part">>): Promise<Received> {
    let header: ContextHeader | undefined;
    let trailer: ContextTrailer | undefined;
    let system = this.#system;
    const fresh: Uint8Array[] = [];
    for await (const { part } of parts) {
      if (part.case === "header") header = part.value;
      else if (part.case === "trailer") trailer = part.value;
      else if (part.case === "chunk") {
        for (const message of part.value.messages) {
          if (message.index === 0) system = message.system;
          fresh.push(message.json);
        }
      }
    }
    const held = this.#lines;
    [this.#lines, this.#system, this.#have] = [[], false, nothing];
    if (!header || !trailer) throw new Error("the context was cut off");
    const lines = [...held.slice(0, header.skippedMessages), ...fresh];
    const hash = hashOf(lines);
    for (const { messageCount, contextHash } of [header, trailer]) {
      if (lines.length !== messageCount || hash !== contextHash) throw new HashMismatchError(contextHash, hash);
    }
    // An injection may be part of the last message, so `have` ends before it.
    const n = header.prefixMessages;
    this.#have = { messageCount: n, prefixHash: n === lines.length ? hash : hashOf(lines.slice(0, n)) };
    this.#lines = lines;
    this.#system = system;
    return { header, lines, system: system && lines.length > 0, sent: fresh.length };
  }
}
