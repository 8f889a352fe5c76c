import type { LanguageModelV3Prompt } from "@ai-sdk/provider";
import { AlreadyExistsError, HeadMismatchError, LogLostError, NotFoundError } from "../errors.js";
import type { Session } from "../session.js";
import { idsOf, isOfPrompt } from "./ids.js";
import { toEvent } from "./to-events.js";

/** What to do if a prompt does not continue the session's log; see MiddlewareOptions. */
export type Diverged = "throw" | "fork";

/** How many times to try again if another writer was faster. */
const writers = 8;

/** How many of the newest forks are searched for one that a prompt continues. */
const searched = 16;

/**
 * A prompt does not continue the session's log: a message that the log has was edited,
 * dropped or pruned in the prompt. The log is never edited: fork the session, or use another one.
 */
export class PromptDivergedError extends Error {
  override readonly name = "PromptDivergedError";
  constructor(
    readonly sessionId: string,
    /** The first message of the prompt that differs from the log. */
    readonly index: number,
    role = "missing",
    /** The newest event that they have in common; 0: none. */
    readonly seq = 0n,
  ) {
    super(
      `message ${index} (${role}) of the prompt is not what the log of ${sessionId} has in its place. A log is never edited: ` +
        "give what changes with each call, such as the time, as injections; for an edited conversation " +
        (seq > 0n ? `fork the session at seq ${seq}, ` : "take another session, ") +
        'or give the middleware diverged: "fork"',
    );
  }
}

/** The messages of prompts that the log of a session has. */
class Log {
  ids: string[] = [];
  seqs: bigint[] = [];
  head = 0n;

  constructor(readonly session: Session) {}

  /** Reads the log. Returns the ids of all its events, including those that others appended. */
  async read(signal: AbortSignal | undefined): Promise<string[]> {
    const all: string[] = [];
    [this.ids, this.seqs, this.head] = [[], [], 0n];
    try {
      for await (const e of this.session.events({}, signal ? { signal } : {})) {
        all.push(e.eventId);
        this.head = e.seq;
        if (!isOfPrompt(e.eventId)) continue;
        this.ids.push(e.eventId);
        this.seqs.push(e.seq);
      }
    } catch (err) {
      if (!(err instanceof NotFoundError)) throw err;
    }
    return all;
  }

  /** How many leading messages of a prompt the log has. */
  shared(prompt: LanguageModelV3Prompt): number {
    const ids = idsOf(prompt, this.ids);
    const differs = this.ids.findIndex((id, i) => id !== ids[i]);
    return differs < 0 ? this.ids.length : differs;
  }

  seqAfter(same: number): bigint {
    return same > 0 ? this.seqs[same - 1]! : 0n;
  }
}

async function exists(session: Session, signal: AbortSignal | undefined): Promise<boolean> {
  try {
    await session.get(signal ? { signal } : {});
    return true;
  } catch (err) {
    if (err instanceof NotFoundError) return false;
    throw err;
  }
}

/**
 * The messages of prompts that are in the log. Their ids are the same in a new process with the same history.
 * Forks of the session are named after it, with /v2, /v3 and so on. A prompt is appended to the fork that it continues.
 */
export class History {
  readonly #first: Session;
  readonly #diverged: Diverged;
  readonly #written = new Map<string, string>();
  readonly #logs = new Map<number, Log>();
  #version = 0;
  #newest = 1;

  constructor(session: Session, diverged: Diverged) {
    this.#first = session;
    this.#diverged = diverged;
  }

  /** Records a call's arguments as the model wrote them; prompts have at most the parsed value. */
  wrote(callId: string, args: string): void {
    this.#written.set(callId, args);
  }

  /**
   * Appends the new messages of a prompt, then calls assemble. If the log was lost, the whole
   * prompt is appended again. Calls must not overlap.
   */
  async follow<T>(prompt: LanguageModelV3Prompt, signal: AbortSignal | undefined, assemble: (session: Session) => Promise<T>): Promise<T> {
    try {
      return await assemble(await this.#follow(prompt, signal));
    } catch (lost) {
      const log = this.#logs.get(this.#version);
      if (!(lost instanceof LogLostError) || !log) throw lost;
      // Others may have begun to append the same conversation again, but not another one.
      const stored = await log.read(signal);
      const again = idsOf(prompt, stored);
      if (stored.some((id, i) => id !== again[i])) throw lost;
      log.session.forget();
      return await assemble(await this.#follow(prompt, signal));
    }
  }

  async #follow(prompt: LanguageModelV3Prompt, signal: AbortSignal | undefined): Promise<Session> {
    for (let n = 0; n < writers; n++) {
      const { log: found, same } = await this.#find(prompt, signal);
      try {
        const log = same < found.ids.length ? await this.#fork(found, same, prompt, signal) : found;
        await this.#append(log, prompt, signal);
        return log.session;
      } catch (err) {
        if (err instanceof NotFoundError) [this.#version, this.#newest] = [0, 1];
        else if (!(err instanceof HeadMismatchError || err instanceof AlreadyExistsError)) throw err;
        // The log is gone, or another writer was faster.
        if (this.#version === 0) this.#logs.clear();
        else this.#logs.delete(this.#version);
      }
    }
    throw new Error(`${this.#first.id}: other writers append faster than this one`);
  }

  /** The log that a prompt continues, or else the one with the most of it; and how many of its messages that has. */
  async #find(prompt: LanguageModelV3Prompt, signal: AbortSignal | undefined): Promise<{ log: Log; same: number }> {
    const current = this.#logs.get(this.#version);
    if (current && current.shared(prompt) === current.ids.length) return { log: current, same: current.ids.length };
    while (await exists(this.#session(this.#newest + 1), signal)) this.#newest++;
    let best: { log: Log; same: number } | undefined;
    for (let version = this.#newest; version > Math.max(this.#newest - searched, 0); version--) {
      let log = this.#logs.get(version);
      if (!log) {
        log = new Log(this.#session(version));
        await log.read(signal);
        this.#logs.set(version, log);
      }
      const same = log.shared(prompt);
      const continued = same > 0 && same === log.ids.length;
      if (!best || same > best.same || continued) {
        best = { log, same };
        this.#version = version;
      }
      if (continued) break;
    }
    return best!;
  }

  #session(version: number): Session {
    return this.#logs.get(version)?.session ?? (version === 1 ? this.#first : this.#first.beside(`${this.#first.id}/v${version}`));
  }

  async #fork(from: Log, same: number, prompt: LanguageModelV3Prompt, signal: AbortSignal | undefined): Promise<Log> {
    const seq = from.seqAfter(same);
    if (this.#diverged === "throw") throw new PromptDivergedError(from.session.id, same, prompt[same]?.role, seq);
    const name = `${this.#first.id}/v${this.#newest + 1}`;
    const control = signal ? { signal } : {};
    const log = new Log(seq > 0n ? await from.session.fork(name, { atSeq: seq, ...control }) : await from.session.createAlike(name, control));
    [log.ids, log.seqs, log.head] = [from.ids.slice(0, same), from.seqs.slice(0, same), seq];
    this.#version = ++this.#newest;
    this.#logs.set(this.#version, log);
    this.#logs.delete(this.#version - searched);
    return log;
  }

  async #append(log: Log, prompt: LanguageModelV3Prompt, signal: AbortSignal | undefined): Promise<void> {
    const from = log.ids.length;
    const ids = idsOf(prompt, log.ids);
    const fresh = prompt.slice(from).map((m, i) => toEvent(m, ids[from + i]!, this.#written));
    if (fresh.length === 0) return;
    const { receipts } = await log.session.append(fresh, { expectedHead: log.head, ...(signal ? { signal } : {}) });
    log.ids = ids;
    log.seqs.push(...receipts.map((r) => r.seq));
    log.head = log.seqs.at(-1)!;
  }
}
