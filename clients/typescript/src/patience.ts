import { setTimeout as timer } from "node:timers/promises";
import { ContextdError, toError } from "./errors.js";
import { checkFunctions, checkNone, wrong } from "./members.js";

/** How a client retries failed calls. */
export interface RetryOptions {
  /**
   * For how many milliseconds a call is retried if the daemon asks for that or does not answer;
   * 0: never. Absent: CONTEXTD_PATIENCE, or 30,000.
   */
  patienceMs?: number;
  /** Waits between two tries; ends early with the signal. Absent: a timer. */
  sleep?: (ms: number, signal?: AbortSignal) => Promise<void>;
}

/** Milliseconds to wait if the daemon does not say how long: from first, doubled up to longest. */
const first = 100;
const longest = 2000;

/**
 * Retries calls. That is safe: events have ids, and reports of model calls have keys. Other calls
 * only read, or are refused the second time. The exception is a call that reverts the newest
 * compaction: if only its answer was lost, a retry would revert the compaction before as well.
 */
export class Patience {
  readonly #ms: number;
  readonly #address: string;
  readonly #sleep: NonNullable<RetryOptions["sleep"]>;
  #ended = false;

  /** Errors name the address. */
  constructor(address: string, { patienceMs = patienceOfEnvironment(), sleep = pause, ...others }: RetryOptions = {}) {
    checkNone("a client", others);
    if (typeof patienceMs !== "number" || !(patienceMs >= 0)) throw wrong("patienceMs", "milliseconds, 0 or more", patienceMs);
    checkFunctions({ sleep });
    this.#ms = patienceMs;
    this.#address = address;
    this.#sleep = sleep;
  }

  /** Calls that fail from now on are not repeated. */
  end(): void {
    this.#ended = true;
  }

  /** The result of a call, or throws the ContextdError of its last try. Without `unanswered`, a call that got no answer is not retried. */
  async call<T>(once: () => Promise<T>, signal?: AbortSignal, unanswered = true): Promise<T> {
    const begun = performance.now();
    for (let tries = 0; ; tries++) {
      try {
        return await once();
      } catch (cause) {
        const err = toError(cause, this.#address);
        const wait = waitMs(err, tries, unanswered);
        if (wait === undefined || this.#ended || performance.now() - begun + wait > this.#ms) throw err;
        await this.#sleep(wait, signal);
      }
    }
  }

  /** The messages of a stream. If it breaks, it is opened again; each message resets the patience. */
  async *parts<T>(open: () => AsyncIterable<T>, signal?: AbortSignal): AsyncGenerator<T> {
    let parts: AsyncIterator<T> | undefined;
    try {
      for (;;) {
        const part = await this.call(async () => {
          parts ??= open()[Symbol.asyncIterator]();
          try {
            return await parts.next();
          } catch (err) {
            parts = undefined;
            throw err;
          }
        }, signal);
        if (part.done) return;
        yield part.value;
      }
    } finally {
      await parts?.return?.();
    }
  }
}

/** How long to wait before the next try; undefined if a retry does not help. */
function waitMs(err: unknown, tries: number, unanswered: boolean): number | undefined {
  if (!(err instanceof ContextdError)) return undefined;
  return err.retryAfterMs ?? (unanswered && err.unanswered ? Math.min(first * 2 ** tries, longest) : undefined);
}

/** Waits by a timer. If the signal ends it early, the next try throws. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return timer(ms, undefined, signal ? { signal } : {}).catch(() => {});
}

const units: Record<string, number> = { h: 3_600_000, m: 60_000, s: 1000, ms: 1 };

/** CONTEXTD_PATIENCE in milliseconds. The variable has seconds, or a duration such as 1m30s. */
function patienceOfEnvironment(): number {
  const text = process.env["CONTEXTD_PATIENCE"];
  if (!text) return 30_000;
  const duration = /\d$/.test(text) ? `${text}s` : text;
  if (!/^(?:\d+(?:\.\d+)?(?:h|ms|m|s))+$/.test(duration)) {
    throw new TypeError(`CONTEXTD_PATIENCE: ${JSON.stringify(text)} is neither seconds nor a duration such as 1m30s`);
  }
  const parts = [...duration.matchAll(/([\d.]+)([a-z]+)/g)];
  return parts.reduce((sum, [, number, unit]) => sum + Number(number) * units[unit!]!, 0);
}
