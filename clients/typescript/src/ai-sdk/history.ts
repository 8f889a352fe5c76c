import type { LanguageModelV3Prompt } from "@ai-sdk/provider";
import { LogLostError, NotFoundError } from "../errors.js";
import type { Session } from "../session.js";
import { idsOf, isOfPrompt } from "./ids.js";
import { toEvent } from "./to-events.js";

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

/** The messages of prompts that are in the log, by ids that a new process with the same history gives them, too. */
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
    const known = (this.#known ??= (await this.#read(signal)).filter(isOfPrompt));
    const ids = idsOf(prompt, known);
    const differs = known.findIndex((id, i) => id !== ids[i]);
    if (differs >= 0) throw new PromptDivergedError(this.#session.id, differs, prompt[differs]?.role);
    try {
      await this.#append(prompt, ids, known.length, signal ? { signal } : {});
      return await assemble();
    } catch (lost) {
      if (!(lost instanceof LogLostError)) throw lost;
      const stored = await this.#read(signal);
      // Others may have begun to append the same conversation again, but not another one.
      const again = idsOf(prompt, stored);
      if (stored.some((id, i) => id !== again[i])) throw lost;
      this.#session.forget();
      await this.#append(prompt, again, stored.length, { expectedHead: BigInt(stored.length), ...(signal ? { signal } : {}) });
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
