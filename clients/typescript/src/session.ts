import { randomUUID } from "node:crypto";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { InjectionSchema } from "./gen/contextd/v1/assembly_pb.js";
import type { CompactSessionRequestSchema, CompactSessionResponse, Summary, UndoCompactionResponse } from "./gen/contextd/v1/compaction_pb.js";
import type { Block, Event } from "./gen/contextd/v1/event_pb.js";
import type { AppendEventsResponse } from "./gen/contextd/v1/log_pb.js";
import type { PolicySchema } from "./gen/contextd/v1/policy_pb.js";
import type { Projection, ReplayProjectionResponse } from "./gen/contextd/v1/projection_pb.js";
import type { LogMark, Session as SessionInfo } from "./gen/contextd/v1/session_pb.js";
import { type ExplainCallResponse, type ModelCall as RecordedCall, RecordModelCallRequestSchema } from "./gen/contextd/v1/tokens_pb.js";
import { type ExportTranscriptRequestSchema, ImportHeaderSchema, type ImportTranscriptResponse } from "./gen/contextd/v1/transcript_pb.js";
import { type BudgetInit, budget, withTools } from "./budget.js";
import { Context } from "./context.js";
import { Delta } from "./delta.js";
import type { EventInit } from "./events.js";
import { checkFormat, type MessageFormat } from "./format.js";
import { checkMembers, checkObject, checkOptions, wrong } from "./members.js";
import type { Patience } from "./patience.js";
import { recallTools, type RecallTools } from "./recall.js";
import { type CallControl, pages, type Services } from "./services.js";
import { bytesOf, gathered, type Transcript, type TranscriptSource, upload } from "./transcripts.js";

/** Settings of a context. Absent ones have the daemon's defaults. */
export interface ProjectOptions extends CallControl {
  budget?: BudgetInit;
  policy?: MessageInitShape<typeof PolicySchema>;
  /** Content for this call only, after the newest message. */
  injections?: MessageInitShape<typeof InjectionSchema>[];
  /** The tool schemas of the request. The budget, which must then be set, leaves room for them. */
  tools?: readonly unknown[];
}

/** Options of an assembly besides the format. Those that are absent are the session's or the daemon's defaults. */
export interface AssembleOptions extends ProjectOptions {
  /** Only events up to this one. */
  asOfSeq?: bigint;
  /** Record nothing. */
  preview?: boolean;
  idempotencyKey?: string;
}

type Mark = Pick<LogMark, "incarnation" | "headSeq" | "chainHead">;

/** What to compact; see CompactSessionRequest. */
export type CompactOptions = CallControl & { budget?: BudgetInit } & Omit<
    MessageInitShape<typeof CompactSessionRequestSchema>,
    "sessionId" | "budget" | "$typeName"
  >;

/** How to export; see ExportTranscriptRequest. */
export type ExportOptions = CallControl & { budget?: BudgetInit } & Omit<
    MessageInitShape<typeof ExportTranscriptRequestSchema>,
    "sessionId" | "harness" | "budget" | "$typeName"
  >;

/** The provider's token counts for a model call. */
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
  /** Reports with the same key count once. By default each has its own. */
  idempotencyKey?: string;
}

/**
 * One session of the daemon. The object keeps the newest context in each format, so use one object
 * for the whole conversation. Several objects with the same id do no harm.
 */
export class Session {
  readonly #services: Services;
  readonly #patience: Patience;
  readonly #deltas = new Map<unknown, Delta>();
  #turn: Promise<unknown> = Promise.resolve();
  #toolTokens: { key: string; tokens: bigint } | undefined;
  #known: Mark | undefined;

  /** See Client.session. */
  constructor(
    services: Services,
    readonly id: string,
    patience: Patience,
    made?: SessionInfo,
  ) {
    this.#services = services;
    this.#patience = patience;
    if (made?.incarnation) this.#learn(made);
  }

  /**
   * Accepts the log as it is now, even if it lacks events that were appended here. Without this,
   * other calls throw a LogLostError then.
   */
  forget(): void {
    this.#known = undefined;
    this.#deltas.clear();
  }

  #learn({ incarnation, headSeq, chainHead }: Mark): void {
    if (this.#known?.incarnation === incarnation && this.#known.headSeq > headSeq) return;
    this.#known = { incarnation, headSeq, chainHead };
  }

  /**
   * Appends all events or none. When it returns, they are durable, unless the daemon's store is in memory.
   * With expectedHead, only if that is the newest seq. Events without an id get one, so that a
   * retry appends nothing twice. Throws a LogLostError if the log lacks events that were
   * appended here before.
   */
  async append(
    events: EventInit | readonly EventInit[],
    options: CallControl & { expectedHead?: bigint } = {},
  ): Promise<AppendEventsResponse> {
    if ("kind" in checkOptions(options)) throw new TypeError("append takes one event, or a list of them, and then options");
    const { expectedHead, ...control } = options;
    const request = {
      sessionId: this.id,
      events: allNamed(Array.isArray(events) ? (events as EventInit[]) : [events as EventInit]),
      ...(expectedHead === undefined ? {} : { expectedHead }),
      ...(this.#known ? { known: this.#known } : {}),
    };
    const appended = await this.#patience.call(() => this.#services.context.appendEvents(request, control), control.signal);
    if (appended.mark) this.#learn(appended.mark);
    return appended;
  }

  /**
   * The context of the next model call. Only messages that this object does not have in this format
   * are requested; the hash of the whole context is compared with the daemon's. Concurrent calls
   * run one after another.
   */
  async assemble<Message, System, Params>(
    format: MessageFormat<Message, System, Params>,
    options: AssembleOptions = {},
  ): Promise<Context<Message, System, Params>> {
    checkFormat(format);
    const { control, rest: given } = split(options);
    const { budget: limit, tools = [], ...rest } = given;
    const bounds = await withTools(limit, tools, async (of) => {
      const request = { ...of, format: format.wire };
      const key = JSON.stringify([of.model, of.tokenizer, format.wire, tools]);
      if (this.#toolTokens?.key !== key) {
        const { tokens } = await this.#patience.call(() => this.#services.context.countTokens(request, control), control.signal);
        this.#toolTokens = { key, tokens };
      }
      return this.#toolTokens.tokens;
    });
    const delta = this.#deltas.get(format.wire) ?? new Delta();
    this.#deltas.set(format.wire, delta);
    const receive = async () => {
      const request = {
        ...rest,
        sessionId: this.id,
        format: format.wire,
        have: delta.have(),
        ...(this.#known ? { known: this.#known } : {}),
        ...(bounds ? { budget: bounds } : {}),
      };
      return await this.#patience.call(() => delta.receive(this.#services.context.assembleContext(request, control)), control.signal);
    };
    const received = this.#turn.then(receive, receive);
    this.#turn = received;
    return new Context(format, await received);
  }

  /** The body that a pointer in a stub, a clip or a ledger line refers to. */
  async resolvePointer(pointer: string, options?: CallControl): Promise<{ event: Event; block: Block | undefined }> {
    const request = { sessionId: this.id, pointer };
    const { event, block } = await this.#patience.call(() => this.#services.context.resolvePointer(request, options), options?.signal);
    return { event: event!, block };
  }

  /**
   * Reports the provider's token counts for a context's model call. Returns the calibration from
   * now on: real tokens / estimated tokens.
   */
  async recordModelCall(
    context: { readonly header: { readonly projectionId: string } },
    call: ModelCall,
    options?: CallControl,
  ): Promise<number> {
    if (!context?.header) throw wrong("context", "what assemble returned", context);
    checkMembers(RecordModelCallRequestSchema, checkObject("call", call));
    const { inputTokens = 0, cacheReadTokens = 0, cacheWriteTokens = 0, outputTokens = 0, idempotencyKey, ...rest } = call;
    const request = {
      ...rest,
      sessionId: this.id,
      idempotencyKey: idempotencyKey || randomUUID(),
      projectionId: context.header.projectionId,
      inputTokens: BigInt(inputTokens),
      cacheReadTokens: BigInt(cacheReadTokens),
      cacheWriteTokens: BigInt(cacheWriteTokens),
      outputTokens: BigInt(outputTokens),
    };
    const { calibration } = await this.#patience.call(() => this.#services.context.recordModelCall(request, options), options?.signal);
    return calibration;
  }

  /** The session's settings and state. Throws a NotFoundError if nothing was appended yet. */
  async get(options?: CallControl): Promise<SessionInfo> {
    const request = { sessionId: this.id };
    return (await this.#patience.call(() => this.#services.context.getSession(request, options), options?.signal)).session!;
  }

  /**
   * Reads the log as it was appended, and ends with the newest event. A stream that breaks continues
   * after the last event; it throws a LogLostError if the log no longer has that event.
   */
  async *events(range: { fromSeq?: bigint; toSeq?: bigint } = {}, options?: CallControl): AsyncGenerator<Event> {
    const { fromSeq = 0n, toSeq = 0n } = checkObject("range", range);
    let last = 0n;
    let known: Mark | undefined;
    const open = () => {
      const request = { sessionId: this.id, fromSeq: last > 0n ? last + 1n : fromSeq, toSeq, ...(known ? { known } : {}) };
      return this.#services.context.readEvents(request, options);
    };
    for await (const page of this.#patience.parts(open, options?.signal)) {
      for (const event of page.events) {
        last = event.seq;
        yield event;
      }
      if (page.incarnation !== "") known = { incarnation: page.incarnation, headSeq: last, chainHead: page.chainHead };
      if (toSeq > 0n && last === toSeq) return;
    }
  }

  /** Creates a session that shares the events up to atSeq, or all. */
  async fork(newSessionId: string, options: CallControl & { atSeq?: bigint } = {}): Promise<Session> {
    const { control, rest } = split(options);
    const request = { ...rest, sessionId: this.id, newSessionId };
    const { session } = await this.#patience.call(() => this.#services.context.forkSession(request, control), control.signal);
    return new Session(this.#services, newSessionId, this.#patience, session);
  }

  /** Another session of the same daemon; see Client.session. */
  beside(id: string): Session {
    return new Session(this.#services, id, this.#patience);
  }

  /** Creates a session with the same settings and no events. */
  async createAlike(newSessionId: string, options?: CallControl): Promise<Session> {
    const { budget, policy, labels } = await this.get(options);
    const request = { sessionId: newSessionId, labels, ...(budget ? { budget } : {}), ...(policy ? { policy } : {}) };
    const { session } = await this.#patience.call(() => this.#services.context.createSession(request, options), options?.signal);
    return new Session(this.#services, newSessionId, this.#patience, session);
  }

  /** Deletes the session and what was derived from it. Forks keep what they share. */
  async delete(options?: CallControl): Promise<void> {
    await this.#patience.call(() => this.#services.context.deleteSession({ sessionId: this.id }, options), options?.signal);
    this.forget();
  }

  /**
   * Compacts the session now, for every later context; the log stays as it is. `outcome` of
   * the answer says whether it was, `overTargetTokens` whether the target was missed.
   */
  async compact(options: CompactOptions = {}): Promise<CompactSessionResponse> {
    const { control, rest } = split(options);
    const { budget: limit, ...others } = rest;
    const request = { ...others, sessionId: this.id, ...(limit === undefined ? {} : { budget: budget(limit) }) };
    return await this.#patience.call(() => this.#services.compactions.compactSession(request, control), control.signal);
  }

  /**
   * Reverts a compaction and all later ones, by default the newest. Without its seq a call that
   * got no answer is not repeated: the daemon may have done it.
   */
  async undoCompaction(compactionSeq = 0n, options?: CallControl): Promise<UndoCompactionResponse> {
    const request = { sessionId: this.id, compactionSeq };
    const undo = () => this.#services.compactions.undoCompaction(request, options);
    return await this.#patience.call(undo, options?.signal, compactionSeq > 0n);
  }

  /** The summaries, newest first. */
  async summaries(options?: CallControl): Promise<Summary[]> {
    const list = (pageToken: string) => this.#services.compactions.listSummaries({ sessionId: this.id, pageToken }, options);
    const all: Summary[] = [];
    const paged = pages(
      (pageToken) => this.#patience.call(() => list(pageToken), options?.signal),
      (page) => page.summaries,
    );
    for await (const summary of paged) all.push(summary);
    return all;
  }

  /** What the model saw of a text or a pointer in a recorded call, and if not, why. Call 0 is the newest. */
  async explain(text = "", call = 0, options?: CallControl): Promise<ExplainCallResponse> {
    const request = { sessionId: this.id, text, call };
    return await this.#patience.call(() => this.#services.context.explainCall(request, options), options?.signal);
  }

  /** The recorded model calls, oldest first. */
  calls(options?: CallControl): AsyncGenerator<RecordedCall> {
    const list = (pageToken: string) => this.#services.context.listModelCalls({ sessionId: this.id, pageToken }, options);
    return pages(
      (pageToken) => this.#patience.call(() => list(pageToken), options?.signal),
      (page) => page.calls,
    );
  }

  /** The recorded projections, oldest first. */
  projections(options?: CallControl): AsyncGenerator<Projection> {
    const list = (pageToken: string) => this.#services.context.listProjections({ sessionId: this.id, pageToken }, options);
    return pages(
      (pageToken) => this.#patience.call(() => list(pageToken), options?.signal),
      (page) => page.projections,
    );
  }

  /** A recorded projection rebuilt from the log, and whether the hash is the same. */
  async replayProjection(projectionId: string, options?: CallControl): Promise<ReplayProjectionResponse> {
    const request = { sessionId: this.id, projectionId };
    return await this.#patience.call(() => this.#services.context.replayProjection(request, options), options?.signal);
  }

  /** The messages of a recorded projection, by default the newest's, as contextd's own JSON, without injections. */
  async renderProjection(projectionId = "", options?: CallControl): Promise<{ replay: ReplayProjectionResponse | undefined; lines: Uint8Array[] }> {
    const receive = async () => {
      let replay: ReplayProjectionResponse | undefined;
      const lines: Uint8Array[] = [];
      for await (const { part } of this.#services.context.renderProjection({ sessionId: this.id, projectionId }, options)) {
        if (part.case === "replay") replay = part.value;
        else if (part.case === "chunk") lines.push(...part.value.messages.map((m) => m.json));
      }
      return { replay, lines };
    };
    return await this.#patience.call(receive, options?.signal);
  }

  /** The text of a pointer in a context. For other content use resolvePointer. */
  async recall(pointer: string, options?: CallControl): Promise<string> {
    const kind = (await this.resolvePointer(pointer, options)).block?.kind;
    if (kind?.case === "text") return kind.value.text;
    if (kind?.case === "toolCall") return new TextDecoder().decode(kind.value.argumentsJson);
    if (kind?.case !== "toolResult") return "";
    return kind.value.content.flatMap((b) => (b.kind.case === "text" ? [b.kind.value.text] : [])).join("\n");
  }

  /**
   * Tools by which the session's model reads its own log, in a provider's form. `recallTool` is
   * the name of the one that returns a pointer's body; the default is the name in the session's
   * policy, or recall.
   */
  async recallTools<Message, System, Params, Tool>(
    format: MessageFormat<Message, System, Params, Tool>,
    options?: CallControl & { recallTool?: string },
  ): Promise<RecallTools<Tool>> {
    checkFormat(format);
    return await recallTools(this.#services, this.#patience, this.id, format, options);
  }

  /** Imports a harness's transcript; importing the same again appends nothing. Without `harness`, it is detected. */
  async importTranscript(source: TranscriptSource, options: CallControl & { harness?: string } = {}): Promise<ImportTranscriptResponse> {
    const { control, rest } = split(options);
    const data = await bytesOf(source);
    const requests = upload(ImportHeaderSchema, { sessionId: this.id, ...rest }, data);
    return await this.#patience.call(() => this.#services.transcripts.importTranscript(requests(), control), control.signal);
  }

  /** The session as the transcript that a harness resumes from. */
  async exportTranscript(harness: string, options: ExportOptions = {}): Promise<Transcript> {
    const { control, rest } = split(options);
    const { budget: limit, ...others } = rest;
    const request = { ...others, sessionId: this.id, harness, ...(limit === undefined ? {} : { budget: budget(limit) }) };
    return await this.#patience.call(() => gathered(this.#services.transcripts.exportTranscript(request, control)), control.signal);
  }
}

/** Splits options into those that control a call, and the others. */
export function split<T extends CallControl>(options: T): { control: CallControl; rest: Omit<T, keyof CallControl> } {
  const { signal, timeoutMs, ...rest } = checkOptions(options);
  return { control: { ...(signal === undefined ? {} : { signal }), ...(timeoutMs === undefined ? {} : { timeoutMs }) }, rest };
}

/** The events, each with a new id if it has none. */
export function allNamed(events: readonly EventInit[]): EventInit[] {
  if (!Array.isArray(events)) throw wrong("events", "a list of events", events);
  return events.map((event: EventInit, i) => {
    if (typeof event !== "object" || !event?.kind) throw wrong(`events[${i}]`, "an event, as user() and the like make them", event);
    return event.eventId === undefined || event.eventId === "" ? { ...event, eventId: randomUUID() } : event;
  });
}
