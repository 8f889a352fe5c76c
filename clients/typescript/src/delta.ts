import type { AssembleContextResponse, ContextHeader, ContextTrailer } from "./gen/contextd/v1/assembly_pb.js";
import { HashMismatchError } from "./errors.js";
import { hashOf } from "./hash.js";

/** A context as it was received: its messages' bytes, and what was decided about it. */
export interface Received {
  header: ContextHeader;
  /** Each message's bytes. They are what the hashes are over: never changed. */
  lines: readonly Uint8Array[];
  /** The first of them is the system prompt as it is sent outside the messages. */
  system: boolean;
  /** How many messages came with this answer; the others were held. */
  sent: number;
}

/**
 * What is held of a context from one request to the next, so that only what is new is
 * sent. An answer takes the place of what was held only when it came whole and its hash
 * is right: one that was cut off leaves everything as it was.
 */
export class Delta {
  #lines: readonly Uint8Array[] = [];
  #system = false;
  #have = { messageCount: 0, prefixHash: "" };

  /** What to say in a request. */
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
    if (!header || !trailer) throw new Error("the context was cut off");
    const lines = [...this.#lines.slice(0, header.skippedMessages), ...fresh];
    const hash = hashOf(lines);
    for (const { messageCount, contextHash } of [header, trailer]) {
      if (lines.length !== messageCount || hash !== contextHash) throw new HashMismatchError(contextHash, hash);
    }
    // An injection may have joined the last message: what is said to be held ends before.
    const n = header.prefixMessages;
    this.#have = { messageCount: n, prefixHash: n === lines.length ? hash : hashOf(lines.slice(0, n)) };
    this.#lines = lines;
    this.#system = system;
    return { header, lines, system: system && lines.length > 0, sent: fresh.length };
  }
}
