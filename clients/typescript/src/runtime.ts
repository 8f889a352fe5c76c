import type { MessageInitShape } from "@bufbuild/protobuf";
import { type Duration, durationFromMs } from "@bufbuild/protobuf/wkt";
import type { CompleteSummaryTaskRequestSchema, SummaryTask } from "./gen/contextd/v1/compaction_pb.js";
import { type HookCall, HookReplySchema, HookSubscriptionSchema, type ServeHooksRequestSchema } from "./gen/contextd/v1/hooks_pb.js";
import type { LifecycleCursor, LifecycleEvent } from "./gen/contextd/v1/lifecycle_pb.js";
import { checkFunctions, checkMembers, checkNone, checkObject, checkOptions, wrong } from "./members.js";
import type { Patience } from "./patience.js";
import type { Services } from "./services.js";

/** The sessions to follow, and the signal that ends it. */
export interface Following {
  /** Only these; none: all. */
  sessionIds?: string[];
  signal?: AbortSignal;
}

/** Where a watch starts in a session: after the event with this number, incarnation and time; see LifecycleCursor. */
export type Cursor = Pick<LifecycleCursor, "sessionId" | "number" | "time"> & { incarnation?: string };

/** What a runtime does before and after compactions. */
export interface Hooks extends Following {
  /** How long the daemon waits for a reply. Absent: the daemon's default. */
  deadlineMs?: number;
  /** Is called before a compaction, and decides on it; returning nothing allows it. */
  preCompact?: (call: HookCall) => HookDecision | void | Promise<HookDecision | void>;
  /** Is called after a compaction. */
  postCompact?: (call: HookCall) => void | Promise<void>;
}

/** See HookReply. */
export type HookDecision = Omit<MessageInitShape<typeof HookReplySchema>, "callId" | "$typeName">;

/** A written summary, with its model and token counts. */
export type WrittenSummary = Omit<MessageInitShape<typeof CompleteSummaryTaskRequestSchema>, "taskId" | "error" | "$typeName">;

/** Writes summaries with a model of the caller's own. */
export interface SummaryWorker extends Following {
  /** The name under which the daemon reports its failures. */
  workerId: string;
  /** After how long the daemon gives a task away. Absent: the daemon's default. */
  leaseMs?: number;
  /** Writes a summary. Errors are reported to the daemon, which may ask again. */
  write: (task: SummaryTask) => string | WrittenSummary | Promise<string | WrittenSummary>;
}

const control = (signal: AbortSignal | undefined) => (signal === undefined ? {} : { signal });

/** The duration, for a message. The daemon checks its range. */
function duration(name: string, ms: number): Duration {
  if (typeof ms !== "number" || !Number.isFinite(ms)) throw wrong(name, "milliseconds", ms);
  return durationFromMs(Math.round(ms));
}

/** See Client.watch. */
export async function* watch(
  services: Services,
  patience: Patience,
  options: Following & { after?: Cursor[] },
): AsyncGenerator<LifecycleEvent> {
  const { sessionIds = [], after = [], signal, ...others } = checkOptions(options);
  checkNone("watch", others);
  if (!Array.isArray(after)) throw wrong("after", "a list of cursors", after);
  const cursors = new Map(after.map((cursor) => [cursor.sessionId, cursor]));
  const named = new Set([...sessionIds, ...cursors.keys()]);
  const open = () => services.compactions.watchLifecycle({ sessionIds, after: [...cursors.values()] }, control(signal));
  for await (const { event } of patience.parts(open, signal)) {
    if (!event) continue;
    const { sessionId, number, incarnation, time } = event;
    if (number > 0n && named.has(sessionId)) {
      cursors.set(sessionId, { sessionId, number, incarnation, ...(time ? { time } : {}) });
    }
    yield event;
  }
}

/** See Client.runHooks. */
export async function runHooks(services: Services, patience: Patience, hooks: Hooks): Promise<void> {
  const { sessionIds = [], deadlineMs, preCompact, postCompact, signal, ...others } = checkObject("hooks", hooks);
  checkNone("runHooks", others);
  checkFunctions({ preCompact, postCompact });
  const subscribe = {
    sessionIds,
    preCompact: preCompact !== undefined,
    postCompact: postCompact !== undefined,
    ...(deadlineMs === undefined ? {} : { deadline: duration("deadlineMs", deadlineMs) }),
  };
  checkMembers(HookSubscriptionSchema, subscribe);
  type Sent = MessageInitShape<typeof ServeHooksRequestSchema>;
  let replies = new Queue<Sent>();
  const open = () => {
    replies.end();
    replies = new Queue<Sent>();
    replies.push({ part: { case: "subscribe", value: subscribe } });
    return services.compactions.serveHooks(replies.items(), control(signal));
  };
  try {
    for await (const { call } of patience.parts(open, signal)) {
      if (!call) continue;
      if (call.hook === "post_compact") {
        await postCompact?.(call);
      } else {
        const decision = (await preCompact?.(call)) ?? {};
        checkMembers(HookReplySchema, checkObject("the hook's decision", decision), "decision");
        replies.push({ part: { case: "reply", value: { ...decision, callId: call.callId } } });
      }
    }
  } finally {
    replies.end();
  }
}

/** See Client.runSummaries. */
export async function runSummaries(services: Services, patience: Patience, worker: SummaryWorker): Promise<void> {
  const { workerId, sessionIds = [], leaseMs, write, signal, ...others } = checkObject("worker", worker);
  checkNone("runSummaries", others);
  if (typeof write !== "function") throw wrong("write", "a function", write);
  const request = { workerId, sessionIds, ...(leaseMs === undefined ? {} : { lease: duration("leaseMs", leaseMs) }) };
  const open = () => services.compactions.leaseSummaryTasks(request, control(signal));
  for await (const { task } of patience.parts(open, signal)) {
    if (!task) continue;
    const done = await Promise.resolve(task)
      .then(write)
      .then(
        (written) => (typeof written === "string" ? { text: written } : written),
        (err: unknown) => ({ error: String(err).slice(0, 8192) }),
      );
    await patience.call(() => services.compactions.completeSummaryTask({ ...done, taskId: task.taskId }), signal);
  }
}

/** Items that a stream sends as soon as they are pushed. */
class Queue<T> {
  readonly #items: T[] = [];
  #wake: () => void = () => {};
  #ended = false;

  push(item: T): void {
    this.#items.push(item);
    this.#wake();
  }

  end(): void {
    this.#ended = true;
    this.#wake();
  }

  async *items(): AsyncGenerator<T> {
    for (;;) {
      if (this.#items.length > 0) yield this.#items.shift()!;
      else if (this.#ended) return;
      else await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }
}
