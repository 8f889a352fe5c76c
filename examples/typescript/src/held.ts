import { createHash } from "node:crypto";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { ContextClient } from "./connection.js";
import {
  type AssembleContextRequestSchema,
  type ContextHeader,
  type ContextTrailer,
  HaveSchema,
  type RenderedMessage,
} from "./gen/contextd/v1/assembly_pb.js";
import type { ToolResult } from "./gen/contextd/v1/event_pb.js";

/** What a client keeps of one session's context in one format. */
export class HeldContext {
  /** The messages' bytes as they came: hashes are over these. */
  messages: RenderedMessage[] = [];
  /** Of the newest assembly. */
  header: ContextHeader | undefined;

  /** Brings the messages up to date, and returns how many were sent. A failure changes nothing. */
  async assemble(
    client: ContextClient,
    request: Omit<MessageInitShape<typeof AssembleContextRequestSchema>, "have" | "$typeName" | "$unknown">,
  ): Promise<number> {
    // Behind prefix_messages they are gone next time, or joined with others.
    const n = this.header?.prefixMessages ?? 0;
    const prefixHash = hashOf(this.messages.slice(0, n));
    const have = n > 0 ? { have: create(HaveSchema, { messageCount: n, prefixHash }) } : {};
    let header: ContextHeader | undefined;
    let trailer: ContextTrailer | undefined;
    const fresh: RenderedMessage[] = [];
    for await (const { part } of client.assembleContext({ ...request, ...have })) {
      if (part.case === "header") header = part.value;
      else if (part.case === "chunk") fresh.push(...part.value.messages);
      else if (part.case === "trailer") trailer = part.value;
    }
    if (!header || !trailer) throw new Error("the answer has no header or no trailer");
    // What is not skipped was rewritten, and comes again.
    const messages = [...this.messages.slice(0, header.skippedMessages), ...fresh];
    check(messages, n, header, trailer);
    this.messages = messages;
    this.header = header;
    return fresh.length;
  }
}

/** Holds what was received to what the daemon says of it. */
function check(messages: RenderedMessage[], had: number, header: ContextHeader, trailer: ContextTrailer): void {
  const hash = hashOf(messages);
  const same = (what: string, got: unknown, want: unknown) => {
    if (got !== want) throw new Error(`${what}: ${got}, but the daemon says ${want}`);
  };
  same("messages", messages.length, header.messageCount);
  same("messages", messages.length, trailer.messageCount);
  messages.forEach((m, i) => same("index", i, m.index));
  same("context hash", hash, header.contextHash);
  same("context hash", hash, trailer.contextHash);
  if (header.prefixMessages === header.messageCount) same("prefix hash", hash, header.prefixHash);
  if (!header.haveBroken) same("messages to skip", had, header.skippedMessages);
}

/** contextd's hash over messages: of each its JSON and a newline. */
export function hashOf(messages: readonly RenderedMessage[]): string {
  const hash = createHash("sha256");
  for (const m of messages) hash.update(m.json).update("\n");
  return "sha256:" + hash.digest("hex");
}

/** How many bytes hashOf covers. */
export function sizeOf(messages: readonly RenderedMessage[]): number {
  return messages.reduce((n, m) => n + m.json.length + 1, 0);
}

/** The hash of a tool result's text, as a RedactionPointer has it. */
export function bodyHash(result: ToolResult): string {
  const texts = result.content.flatMap(({ kind }) => (kind.case === "text" ? kind.value.text : []));
  return "sha256:" + createHash("sha256").update(texts.join("\n")).digest("hex");
}
