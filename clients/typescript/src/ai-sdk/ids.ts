import { createHash } from "node:crypto";
import type { LanguageModelV3Message, LanguageModelV3Prompt } from "@ai-sdk/provider";
import { withoutMarks } from "./options.js";
import { isFailure } from "./to-events.js";

type Result = Extract<LanguageModelV3Message, { role: "tool" }>["content"][number];

const prefix = "ai-sdk:";

/** Whether an event is a prompt's message, by its id. */
export function isOfPrompt(eventId: string): boolean {
  return eventId.startsWith(prefix);
}

/**
 * The ids of the events for a prompt's messages. `known` are those of the leading messages that the log has. An id is
 * a hash of its message and all before it. The id of a tool message also has a set of bits: which results had failed
 * when it was appended. Later prompts show failures otherwise, such as "An error occurred." in UI messages, or, from
 * Mastra, as the text of a success.
 */
export function idsOf(prompt: LanguageModelV3Prompt, known: readonly string[]): string[] {
  let before = "";
  return prompt.map((m, i) => {
    let content: unknown = m.content;
    let suffix = "";
    if (m.role === "tool") {
      const results = m.content.toSorted(byCall);
      const failed = i < known.length ? failuresIn(known[i]!) : failuresOf(results);
      content = results.map((p, n) => identity(p, (failed >> BigInt(n)) % 2n === 1n));
      if (failed > 0n) suffix = `.${failed.toString(16)}`;
    }
    const text = JSON.stringify(plain({ role: m.role, content }));
    before = prefix + createHash("sha256").update(`${before}\n${text}`).digest("hex") + suffix;
    return before;
  });
}

/** The SDK lists results in the order in which they arrive, and those of UI messages in the order of the calls. */
function byCall(a: Result, b: Result): number {
  const [x, y] = [a, b].map((p) => (p.type === "tool-result" ? p.toolCallId : ""));
  return x! < y! ? -1 : x! > y! ? 1 : 0;
}

function failuresOf(results: readonly Result[]): bigint {
  return results.reduce((set, p, n) => (p.type === "tool-result" && isFailure(p.output) ? set | (1n << BigInt(n)) : set), 0n);
}

function failuresIn(id: string): bigint {
  return BigInt(`0x${/^ai-sdk:[0-9a-f]{64}\.([0-9a-f]+)$/.exec(id)?.[1] ?? "0"}`);
}

/** The parts of a result that its event depends on. */
function identity(p: Result, failed: boolean): unknown {
  if (p.type !== "tool-result") return p;
  return { toolCallId: p.toolCallId, toolName: p.toolName, output: failed ? "failure" : p.output };
}

/** A value whose JSON does not depend on the order of members, nor on whether it was JSON before. */
function plain(value: unknown): unknown {
  if (value instanceof Uint8Array) return { bytes: Buffer.from(value).toString("base64") };
  if (value instanceof URL) return { url: value.href };
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== "object" || value === null) return value;
  if ("toJSON" in value && typeof value.toJSON === "function") return plain(value.toJSON());
  const members = Object.entries(value)
    .map(([name, v]) => [name, name === "providerOptions" ? withoutMarks(v as never) : v] as const)
    .filter(([, v]) => v !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1));
  return members.map(([name, v]) => [name, plain(v)]);
}
