import { randomUUID } from "node:crypto";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { CallOptions, Client as Stub } from "@connectrpc/connect";
import type { InjectionSchema } from "./gen/contextd/v1/assembly_pb.js";
import type { ContextService } from "./gen/contextd/v1/context_service_pb.js";
import type { Block, Event } from "./gen/contextd/v1/event_pb.js";
import type { AppendEventsResponse, ReadEventsResponse } from "./gen/contextd/v1/log_pb.js";
import type { PolicySchema } from "./gen/contextd/v1/policy_pb.js";
import type { LogMark, Session as SessionInfo } from "./gen/contextd/v1/session_pb.js";
import { type BudgetInit, budget } from "./budget.js";
import { Context } from "./context.js";
import { Delta } from "./delta.js";
import type { EventInit } from "./events.js";
import type { MessageFormat } from "./format.js";
import { Patience } from "./patience.js";

/** Ends a call early: by a signal, or each of its tries after some time. */
export type CallControl = Pick<CallOptions, "signal" | "timeoutMs">;

/** What to assemble, besides the format. What is absent is the session's or the daemon's default. */
export interface AssembleOptions extends CallControl {
  budget?: BudgetInit;
  policy?: MessageInitShape<typeof PolicySchema>;
  /** Content for this call only, after the newest message. */
  injections?: MessageInitShape<typeof InjectionSchema>[];
  /** Only events up to this one. */
  asOfSeq?: bigint;
  /** Record nothing. */
  preview?: boolean;
  idempotencyKey?: string;
}

/** What the provider counted for a call. */
export interface ModelCall {
  model?: string;
  /** All tokens of the prompt, cached ones included. */
  inputTokens?: number;
  cacheReadTokens?: number;
  cacheWriteTokens?: number;
  outputTokens?: number;
  stopReason?: string;
  /** The provider refused the prompt as too long. */
  rejectedOverBudget?: boolean;
}

/**
 * One session of the daemon. It holds what it was sent of the context in each format, so
 * keep one for as long as the conversation goes on; others with the same id do no harm.
 */
export class Session {
  readonly #stub: Stub<typeof ContextService>;
  readonly #patience: Patience;
  readonly #deltas = new Map<unknown, Delta>();
  #turn: Promise<unknown> = Promise.resolve();
  #known: Pick<LogMark, "incarnation" | "headSeq"> | undefined;

  /** See Client.session. */
  constructor(
    stub: Stub<typeof ContextService>,
    readonly id: string,
    patience: Patience,
    made?: SessionInfo,
  ) {
    this.#stub = stub;
    this.#patience = patience;
    if (made?.incarnation) this.#learn(made);
  }

  /**
   * Takes the log for what it is from now on, whatever was appended to it. Other calls throw
   * a LogLostError where the log lacks what was appended here.
   */
  forget(): void {
    this.#known = undefined;
    this.#deltas.clear();
  }

  #learn({ incarnation, headSeq }: Pick<LogMark, "incarnation" | "headSeq">): void {
    if (this.#known?.incarnation === incarnation && this.#known.headSeq > headSeq) return;
    this.#known = { incarnation, headSeq };
  }

  /**
   * Appends events, whole or not at all; they are durable when it returns, where the
   * daemon's store is. With expectedHead, only if the newest seq is this one. Events without
   * an id are given one, so that a repetition appends nothing twice. A LogLostError where
   * the log lacks what was appended here before.
   */
  async append(
    events: EventInit | readonly EventInit[],
    options: CallControl & { expectedHead?: bigint } = {},
  ): Promise<AppendEventsResponse> {
    const { expectedHead, ...control } = options;
    const request = {
      sessionId: this.id,
      events: ("kind" in events ? [events] : (events as readonly EventInit[])).map(named),
      ...(expectedHead === undefined ? {} : { expectedHead }),
      ...(this.#known ? { known: this.#known } : {}),
    };
    const appended = await this.#patience.call(() => this.#stub.appendEvents(request, control), control.signal);
    if (appended.mark) this.#learn(appended.mark);
    return appended;
  }

  /**
   * The context of the next model call. What was received before in this format is asked
   * for no more; the hash of the whole is compared with the daemon's. Calls wait for one
   * another.
   */
  async assemble<Message, System, Params>(
    format: MessageFormat<Message, System, Params>,
    options: AssembleOptions = {},
  ): Promise<Context<Message, System, Params>> {
    const { signal, timeoutMs, budget: limit, ...rest } = options;
    const delta = this.#deltas.get(format.wire) ?? new Delta();
    this.#deltas.set(format.wire, delta);
    const receive = async () => {
      const request = {
        ...rest,
        sessionId: this.id,
        format: format.wire,
        have: delta.have(),
        ...(this.#known ? { known: this.#known } : {}),
        ...(limit ? { budget: budget(limit) } : {}),
      };
      const control = { ...(signal ? { signal } : {}), ...(timeoutMs === undefined ? {} : { timeoutMs }) };
      return await this.#patience.call(() => delta.receive(this.#stub.assembleContext(request, control)), signal);
    };
    const received = this.#turn.then(receive, receive);
    this.#turn = received;
    return new Context(format, await received);
  }

  /** Gives back what a stub, a clip or a ledger line points to. */
  async resolvePointer(pointer: string, options?: CallControl): Promise<{ event: Event; block: Block | undefined }> {
    const request = { sessionId: this.id, pointer };
    const { event, block } = await this.#patience.call(() => this.#stub.resolvePointer(request, options), options?.signal);
    return { event: event!, block };
  }

  /**
   * Tells what the provider counted for a call that was made from a context. Returns real
   * tokens by estimated tokens, from now on.
   */
  async recordModelCall(
    context: { readonly header: { readonly projectionId: string } },
    call: ModelCall,
    options?: CallControl,
  ): Promise<number> {
    const { inputTokens = 0, cacheReadTokens = 0, cacheWriteTokens = 0, outputTokens = 0, ...rest } = call;
    const request = {
      ...rest,
      sessionId: this.id,
      projectionId: context.header.projectionId,
      inputTokens: BigInt(inputTokens),
      cacheReadTokens: BigInt(cacheReadTokens),
      cacheWriteTokens: BigInt(cacheWriteTokens),
      outputTokens: BigInt(outputTokens),
    };
    const { calibration } = await this.#patience.call(() => this.#stub.recordModelCall(request, options), options?.signal);
    return calibration;
  }

  /** What the session is; a NotFoundError where nothing was appended yet. */
  async get(options?: CallControl): Promise<SessionInfo> {
    const request = { sessionId: this.id };
    return (await this.#patience.call(() => this.#stub.getSession(request, options), options?.signal)).session!;
  }

  /** Reads the log as it was appended. Ends with the newest event. */
  async *events(range: { fromSeq?: bigint; toSeq?: bigint } = {}, options?: CallControl): AsyncGenerator<Event> {
    const { fromSeq = 0n, toSeq = 0n } = range;
    let last = 0n;
    let pages: AsyncIterator<ReadEventsResponse> | undefined;
    try {
      while (toSeq === 0n || last !== toSeq) {
        const page = await this.#patience.call(async () => {
          // What was cut off is asked for again from where it broke.
          const request = { sessionId: this.id, fromSeq: last > 0n ? last + 1n : fromSeq, toSeq };
          pages ??= this.#stub.readEvents(request, options)[Symbol.asyncIterator]();
          try {
            return await pages.next();
          } catch (err) {
            pages = undefined;
            throw err;
          }
        }, options?.signal);
        if (page.done) return;
        for (const event of page.value.events) {
          last = event.seq;
          yield event;
        }
      }
    } finally {
      await pages?.return?.();
    }
  }
}

/** The event with an id. */
function named(event: EventInit): EventInit {
  return event.eventId ? event : { ...event, eventId: randomUUID() };
}
