import { createHash } from "node:crypto";
import type { LanguageModelV3Message, LanguageModelV3Prompt } from "@ai-sdk/provider";
import { LogLostError, NotFoundError } from "../errors.js";
import type { Session } from "../session.js";
import { withoutMarks } from "./options.js";
import { isFailure, toEvent } from "./to-events.js";

/**
 * A prompt does not continue the session's log: a message that the log has was edited,
 * dropped or pruned. The log is never edited; fork the session, or use another one.
 */
export class PromptDivergedError extends Error {
  override readonly name = "PromptDivergedError";
  constructor(
    readonly sessionId: string,
    /** The first message of the prompt that differs from the log. */
    readonly index: number,
    role = "missing",
  ) {
    super(
      `message ${index} (${role}) of the prompt is not what the log of ${sessionId} has in its place. A log is never edited: ` +
        "give what changes with each call, such as the time, as injections; for an edited conversation fork the session or take another",
    );
  }
}

const prefix = "ai-sdk:";

/**
 * The messages of prompts that are in the log. The id of each event is a hash of its message and all
 * before it, so that a new process with the same history appends nothing twice.
 */
export class History {
  readonly #session: Session;
  readonly #written = new Map<string, string>();
  #known: string[] | undefined;

  constructor(session: Session) {
    this.#session = session;
  }

  /** Records a call's arguments as the model wrote them; prompts have them parsed, if at all. */
  wrote(callId: string, args: string): void {
    this.#written.set(callId, args);
  }

  /**
   * Appends the new messages of a prompt, then calls assemble. If the log was lost, the whole
   * prompt is appended again. Calls must not overlap.
   */
  async follow<T>(prompt: LanguageModelV3Prompt, signal: AbortSignal | undefined, assemble: () => Promise<T>): Promise<T> {
    const known = (this.#known ??= (await this.#read(signal)).filter((id) => id.startsWith(prefix)));
    const ids = chain(prompt);
    const differs = known.findIndex((id, i) => id !== ids[i]);
    if (differs >= 0) throw new PromptDivergedError(this.#session.id, differs, prompt[differs]?.role);
    try {
      await this.#append(prompt, ids, known.length, signal ? { signal } : {});
      return await assemble();
    } catch (lost) {
      if (!(lost instanceof LogLostError)) throw lost;
      const stored = await this.#read(signal);
      // Others may have begun to append the same conversation again, but not another one.
      if (stored.some((id, i) => id !== ids[i])) throw lost;
      this.#session.forget();
      await this.#append(prompt, ids, stored.length, { expectedHead: BigInt(stored.length), ...(signal ? { signal } : {}) });
      return await assemble();
    }
  }

  async #append(prompt: LanguageModelV3Prompt, ids: string[], from: number, options: { expectedHead?: bigint; signal?: AbortSignal }): Promise<void> {
    const fresh = prompt.slice(from).map((m, i) => toEvent(m, ids[from + i]!, this.#written));
    if (fresh.length > 0) await this.#session.append(fresh, options);
    this.#known = ids;
  }

  async #read(signal: AbortSignal | undefined): Promise<string[]> {
    const ids: string[] = [];
    try {
      for await (const e of this.#session.events({}, signal ? { signal } : {})) ids.push(e.eventId);
    } catch (err) {
      if (!(err instanceof NotFoundError)) throw err;
    }
    return ids;
  }
}

function chain(prompt: LanguageModelV3Prompt): string[] {
  let before = "";
  return prompt.map((m) => {
    before = prefix + createHash("sha256").update(`${before}\n${canonical(m)}`).digest("hex");
    return before;
  });
}

/** The parts of a message that its event depends on, as text that does not depend on the order of members. */
function canonical(m: LanguageModelV3Message): string {
  const { providerOptions: _, ...rest } = m;
  if (m.role !== "tool") return JSON.stringify(plain(rest));
  // The SDK lists results as they come, and those of UI messages in the order of the calls.
  return JSON.stringify({ role: m.role, results: m.content.map((p) => JSON.stringify(plain(answer(p)))).sort() });
}

/**
 * The part of a result that identifies it. UI messages have other words for an error or a denial than the
 * prompt that the model saw, such as "An error occurred.", and other options, which no event has.
 */
function answer(p: Extract<LanguageModelV3Message, { role: "tool" }>["content"][number]): unknown {
  if (p.type !== "tool-result") return p;
  const { providerOptions: _, output, ...rest } = p;
  return { ...rest, output: isFailure(output) ? "failure" : output };
}

function plain(value: unknown): unknown {
  if (value instanceof Uint8Array) return { bytes: Buffer.from(value).toString("base64") };
  if (value instanceof URL) return { url: value.href };
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== "object" || value === null) return value;
  if ("toJSON" in value && typeof value.toJSON === "function") return plain(value.toJSON()); // a Date is a text once it was stored
  const members = Object.entries(value)
    .map(([name, v]) => [name, name === "providerOptions" ? withoutMarks(v as never) : v] as const)
    .filter(([, v]) => v !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1));
  return members.map(([name, v]) => [name, plain(v)]);
}
