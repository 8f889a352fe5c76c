// The events of a log, loaded as they come into view.
import { contexts } from "./api";
import type { Event } from "./gen/contextd/v1/event_pb";

export type LoggedEvent = { event: Event; tokens: number };

const chunk = 64;
// most is how many chunks are cached: the most recently used ones.
const most = 60;

// Window reads a log in chunks of events.
export class Window {
  private readonly chunks = new Map<number, LoggedEvent[] | "loading">();
  private readonly control = new AbortController();

  constructor(
    private readonly session: string,
    private readonly head: number,
    private readonly changed: () => void,
    private readonly failed: (error: unknown) => void,
  ) {}

  // get returns an event, or undefined while it is loaded; changed is called afterwards.
  get(seq: number): LoggedEvent | undefined {
    if (seq < 1 || seq > this.head) return undefined;
    const at = Math.floor((seq - 1) / chunk);
    const have = this.chunks.get(at);
    if (have === undefined) {
      this.chunks.set(at, "loading");
      this.load(at);
      return undefined;
    }
    if (have === "loading") return undefined;
    return have.find((e) => Number(e.event.seq) === seq);
  }

  close() {
    this.control.abort();
  }

  private async load(at: number) {
    const out: LoggedEvent[] = [];
    const range = { fromSeq: BigInt(at * chunk + 1), toSeq: BigInt(Math.min(this.head, (at + 1) * chunk)) };
    try {
      for await (const some of contexts.readEvents({ sessionId: this.session, ...range }, { signal: this.control.signal })) {
        some.events.forEach((event, i) => out.push({ event, tokens: some.tokens[i] ?? 0 }));
      }
    } catch (error) {
      if (!this.control.signal.aborted) this.failed(error);
      return;
    }
    this.chunks.delete(at);
    this.chunks.set(at, out);
    for (const old of this.chunks.keys()) {
      if (this.chunks.size <= most) break;
      if (this.chunks.get(old) !== "loading") this.chunks.delete(old);
    }
    this.changed();
  }
}
