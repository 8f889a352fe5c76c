import type { MessageInitShape } from "@bufbuild/protobuf";
import type { CallOptions, Client as Stub } from "@connectrpc/connect";
import type { InjectionSchema } from "./gen/contextd/v1/assembly_pb.js";
import type { ContextService } from "./gen/contextd/v1/context_service_pb.js";
import type { Block, Event } from "./gen/contextd/v1/event_pb.js";
import type { AppendEventsResponse } from "./gen/contextd/v1/log_pb.js";
import type { PolicySchema } from "./gen/contextd/v1/policy_pb.js";
import type { Session as SessionInfo } from "./gen/contextd/v1/session_pb.js";
import { type BudgetInit, budget } from "./budget.js";
import { Context } from "./context.js";
import { Delta } from "./delta.js";
import { toError } from "./errors.js";
import type { EventInit } from "./events.js";
import type { MessageFormat } from "./format.js";

/** Ends a call early: by a signal, or after some time. */
export type CallControl = Pick<CallOptions, "signal" | "timeoutMs">;

/** What to assemble, beside the format. What is absent is the session's or the daemon's default. */
export interface AssembleOptions extends CallControl {
  budget?: BudgetInit;
  policy?: MessageInitShape<typeof PolicySchema>;
  /** Content for this call alone, behind the newest message. */
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
  readonly #deltas = new Map<unknown, Delta>();
  #turn: Promise<unknown> = Promise.resolve();

  /** See Client.session. */
  constructor(
    stub: Stub<typeof ContextService>,
    readonly id: string,
  ) {
    this.#stub = stub;
  }

  /**
   * Appends events, whole or not at all; they are durable when it returns, where the
   * daemon's store is. With expectedHead, only if the newest seq is this one.
   */
  async append(
    events: EventInit | readonly EventInit[],
    options: CallControl & { expectedHead?: bigint } = {},
  ): Promise<AppendEventsResponse> {
    const { expectedHead, ...control } = options;
    const request = {
      sessionId: this.id,
      events: "kind" in events ? [events] : [...(events as readonly EventInit[])],
      ...(expectedHead === undefined ? {} : { expectedHead }),
    };
    return await this.#call(() => this.#stub.appendEvents(request, control));
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
        ...(limit ? { budget: budget(limit) } : {}),
      };
      const control = { ...(signal ? { signal } : {}), ...(timeoutMs === undefined ? {} : { timeoutMs }) };
      return await this.#call(() => delta.receive(this.#stub.assembleContext(request, control)));
    };
    const received = this.#turn.then(receive, receive);
    this.#turn = received;
    return new Context(format, await received);
  }

  /** Gives back what a stub, a clip or a ledger line points to. */
  async resolvePointer(pointer: string, options?: CallControl): Promise<{ event: Event; block: Block | undefined }> {
    const { event, block } = await this.#call(() =>
      this.#stub.resolvePointer({ sessionId: this.id, pointer }, options),
    );
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
    const { calibration } = await this.#call(() =>
      this.#stub.recordModelCall(
        {
          ...rest,
          sessionId: this.id,
          projectionId: context.header.projectionId,
          inputTokens: BigInt(inputTokens),
          cacheReadTokens: BigInt(cacheReadTokens),
          cacheWriteTokens: BigInt(cacheWriteTokens),
          outputTokens: BigInt(outputTokens),
        },
        options,
      ),
    );
    return calibration;
  }

  /** What the session is; a NotFoundError where nothing was appended yet. */
  async get(options?: CallControl): Promise<SessionInfo> {
    return (await this.#call(() => this.#stub.getSession({ sessionId: this.id }, options))).session!;
  }

  /** Reads the log as it was appended. Ends with the newest event. */
  async *events(range: { fromSeq?: bigint; toSeq?: bigint } = {}, options?: CallControl): AsyncGenerator<Event> {
    try {
      for await (const page of this.#stub.readEvents({ sessionId: this.id, ...range }, options)) yield* page.events;
    } catch (err) {
      throw toError(err);
    }
  }

  async #call<T>(call: () => Promise<T>): Promise<T> {
    try {
      return await call();
    } catch (err) {
      throw toError(err);
    }
  }
}
