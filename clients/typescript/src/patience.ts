import { setTimeout as timer } from "node:timers/promises";
import { ContextdError, toError } from "./errors.js";

/** What a client does where waiting helps. */
export interface RetryOptions {
  /** How often a call is repeated where the daemon says when to, or is not there; 3 if absent. */
  retries?: number;
  /** How many milliseconds a single wait may take; where the daemon asks for more, the call fails. A minute if absent. */
  longestWaitMs?: number;
  /** Waits between two tries; ends early with the signal. A timer if absent. */
  sleep?: (ms: number, signal?: AbortSignal) => Promise<void>;
}

/** Milliseconds to wait where nobody says how long. */
const first = 100;
const longest = 2000;

/** Repeats calls. A call can be repeated because events have ids; the others only read, or are refused the second time. */
export class Patience {
  readonly #retries: number;
  readonly #longestWaitMs: number;
  readonly #sleep: NonNullable<RetryOptions["sleep"]>;

  constructor({ retries = 3, longestWaitMs = 60_000, sleep = pause }: RetryOptions = {}) {
    this.#retries = retries;
    this.#longestWaitMs = longestWaitMs;
    this.#sleep = sleep;
  }

  /** What the call gives, or the ContextdError of its last try. */
  async call<T>(once: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    for (let tries = 0; ; tries++) {
      try {
        return await once();
      } catch (cause) {
        const err = toError(cause);
        const wait = waitMs(err, tries);
        if (wait === undefined || tries >= this.#retries || wait > this.#longestWaitMs) throw err;
        await this.#sleep(wait, signal);
      }
    }
  }
}

/** How long to wait before the next try; undefined where that does not help. */
function waitMs(err: unknown, tries: number): number | undefined {
  if (!(err instanceof ContextdError)) return undefined;
  // A daemon that answers gives a reason of its own.
  const unanswered = err.code === "UNAVAILABLE" && err.reason === "TRANSPORT";
  return err.retryAfterMs ?? (unanswered ? Math.min(first * 2 ** tries, longest) : undefined);
}

/** Waits by a timer. Where the signal ends it early, the next try says so. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return timer(ms, undefined, signal ? { signal } : {}).catch(() => {});
}
