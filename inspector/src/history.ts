// The records of a session, read page by page and then kept up to date.
import { useEffect, useState } from "preact/hooks";
import { compactions, contexts, refusal, type Refusal } from "./api";
import type { LifecycleEvent } from "./gen/contextd/v1/lifecycle_pb";
import type { Projection } from "./gen/contextd/v1/projection_pb";
import type { Session } from "./gen/contextd/v1/session_pb";
import type { ModelCall } from "./gen/contextd/v1/tokens_pb";

export type History = {
  session?: Session;
  projections: Projection[];
  calls: ModelCall[];
  events: LifecycleEvent[];
  // complete is set once all records were read; following is set while new ones are shown as they come.
  complete: boolean;
  following: boolean;
  refusal?: Refusal | undefined;
};

type Page<T> = { items: T[]; next: string };

// Tail reads a list to its end, and when there may be more, again from its last page.
export class Tail<T> {
  private readonly full: T[] = [];
  private last: T[] = [];
  private token = "";

  constructor(private readonly page: (token: string, signal: AbortSignal) => Promise<Page<T>>) {}

  get items(): T[] {
    return this.full.concat(this.last);
  }

  async read(signal: AbortSignal, each: () => void) {
    for (;;) {
      const page = await this.page(this.token, signal);
      if (signal.aborted) return;
      if (page.next === "") {
        this.last = page.items;
        each();
        return;
      }
      this.full.push(...page.items);
      this.last = [];
      this.token = page.next;
      each();
    }
  }
}

const pageSize = 1000;

// again is how long to wait before a daemon that did not answer is asked again, in ms.
const again = 2000;

// pause is how long lifecycle events are collected before the records are read again, in ms.
const pause = 500;

export function useHistory(session: string): History {
  const [history, set] = useState<History>({ projections: [], calls: [], events: [], complete: false, following: false });
  useEffect(() => {
    const control = new AbortController();
    const { signal } = control;
    const update = (more: Partial<History>) => {
      if (!signal.aborted) set((old) => ({ ...old, ...more }));
    };
    const projections = new Tail<Projection>(async (pageToken, signal) => {
      const page = await contexts.listProjections({ sessionId: session, brief: true, pageSize, pageToken }, { signal });
      return { items: page.projections, next: page.nextPageToken };
    });
    const calls = new Tail<ModelCall>(async (pageToken, signal) => {
      const page = await contexts.listModelCalls({ sessionId: session, pageSize, pageToken }, { signal });
      return { items: page.calls, next: page.nextPageToken };
    });
    const read = async () => {
      const found = contexts.getSession({ sessionId: session }, { signal }).then((r) => update({ session: r.session! }));
      await Promise.all([
        found,
        projections.read(signal, () => update({ projections: projections.items })),
        calls.read(signal, () => update({ calls: calls.items })),
      ]);
      update({ complete: true });
    };
    const follow = async () => {
      const events: LifecycleEvent[] = []; // all of them are sent again
      let due: ReturnType<typeof setTimeout> | undefined;
      let reading = Promise.resolve();
      // From the first event on, so that what happened before is marked too.
      const stream = compactions.watchLifecycle({ sessionIds: [session], after: [{ sessionId: session, number: 0n }] }, { signal, onHeader: () => update({ following: true }) });
      for await (const { event } of stream) {
        if (event === undefined || event.sessionId !== session) continue;
        events.push(event);
        due ??= setTimeout(() => {
          due = undefined;
          update({ events: events.slice() });
          reading = reading.then(read).catch((e) => update({ refusal: refusal(e) }));
        }, pause);
      }
    };
    // Retry while the daemon is away. Errors that it returns are not retried.
    const keepReading = async () => {
      while (!signal.aborted) {
        try {
          await read();
          update({ refusal: undefined });
          await follow();
        } catch (e) {
          if (signal.aborted) return;
          const why = refusal(e);
          update({ refusal: why, following: false });
          if (!why.passing) return;
        }
        update({ following: false });
        await new Promise((resolve) => setTimeout(resolve, again));
      }
    };
    void keepReading();
    return () => control.abort();
  }, [session]);
  return history;
}
