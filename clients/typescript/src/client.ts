import { connect as connectSocket } from "node:net";
import type { Client as Stub } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import type { ContextService } from "./gen/contextd/v1/context_service_pb.js";
import { type BudgetInit, budget, jsonOf, withTools } from "./budget.js";
import { Connection } from "./connection.js";
import { Context } from "./context.js";
import { bearer, type Credentials, credentialsOfEnvironment, tlsOptions } from "./credentials.js";
import { Delta } from "./delta.js";
import type { EventInit } from "./events.js";
import { checkFormat, type MessageFormat } from "./format.js";
import { checkObject, checkOptions, wrong } from "./members.js";
import { Patience, type RetryOptions } from "./patience.js";
import { allNamed, type ProjectOptions, Session, split } from "./session.js";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Format } from "./gen/contextd/v1/format_pb.js";
import type { LifecycleEvent } from "./gen/contextd/v1/lifecycle_pb.js";
import type { PolicySchema } from "./gen/contextd/v1/policy_pb.js";
import type { Session as SessionInfo } from "./gen/contextd/v1/session_pb.js";
import { ConvertHeaderSchema } from "./gen/contextd/v1/transcript_pb.js";
import { type Cursor, type Following, type Hooks, runHooks, runSummaries, type SummaryWorker, watch } from "./runtime.js";
import { type CallControl, pages, type Services, services } from "./services.js";
import { bytesOf, gathered, type Transcript, type TranscriptSource, upload } from "./transcripts.js";

/** The daemon's default address. */
export const defaultAddress = "127.0.0.1:7171";

/** How a client calls the daemon. */
export interface ClientOptions extends RetryOptions {
  credentials?: Credentials;
}

/** A connection to a daemon. Close it to let the process end. */
export class Client {
  /** The plain stubs of all services. */
  readonly services: Services;
  readonly #connection: Connection;
  readonly #patience: Patience;

  /**
   * Connects at the first call. The address is host:port or unix:///path; the default is
   * CONTEXTD_ADDR, or else the daemon's default. Absent credentials are taken from the
   * environment.
   */
  constructor(address = "", options: ClientOptions = {}) {
    if (typeof address !== "string") throw wrong("address", "a string", address);
    address = address || process.env["CONTEXTD_ADDR"] || defaultAddress;
    if (!/^(unix:(\/\/)?\/.*|(\[[^\]]+\]|[^:/]+):\d+)$/.test(address)) {
      throw new TypeError(`the address ${JSON.stringify(address)} must be host:port or unix:///path`);
    }
    const { credentials = credentialsOfEnvironment(), ...retry } = checkOptions(options);
    this.#patience = new Patience(address, retry);
    const secured = tlsOptions(credentials, address);
    const path = /^unix:(?:\/\/)?(\/.*)$/.exec(address)?.[1];
    const baseUrl = path ? "http://localhost" : `${secured ? "https" : "http"}://${address}`;
    const socket = path ? { createConnection: () => connectSocket(path) } : {};
    this.#connection = new Connection(baseUrl, {}, secured ?? socket);
    const interceptors = credentials.tokenFile ? [bearer(credentials.tokenFile)] : [];
    this.services = services(createGrpcTransport({ baseUrl, interceptors, sessionManager: this.#connection }));
  }

  /** Every RPC of contextd.v1.ContextService; the other services are in `services`. */
  get stub(): Stub<typeof ContextService> {
    return this.services.context;
  }

  /** A session by its id. It need not exist: the first append creates it. */
  session(id: string): Session {
    if (typeof id !== "string") throw wrong("a session's id", "a string", id);
    return new Session(this.services, id, this.#patience);
  }

  /** Creates a session with settings of its own. Throws an AlreadyExistsError if it exists. */
  async createSession(
    id: string,
    settings: { budget?: BudgetInit; policy?: MessageInitShape<typeof PolicySchema>; labels?: Record<string, string> } = {},
    options?: CallControl,
  ): Promise<Session> {
    const { budget: limit, ...rest } = checkObject("settings", settings);
    const request = { sessionId: id, ...rest, ...(limit === undefined ? {} : { budget: budget(limit) }) };
    const { session } = await this.#patience.call(() => this.stub.createSession(request, options), options?.signal);
    return new Session(this.services, id, this.#patience, session);
  }

  /** All sessions, by id; with labels, only those that have all of them. */
  sessions(labels: Record<string, string> = {}, options?: CallControl): AsyncGenerator<SessionInfo> {
    return pages(
      (pageToken) => this.#patience.call(() => this.stub.listSessions({ labels, pageToken }, options), options?.signal),
      (page) => page.sessions,
    );
  }

  /** The context of events that are not in a log, as Session.assemble gives it. Nothing is stored. */
  async projectTranscript<Message, System, Params>(
    events: readonly EventInit[],
    format: MessageFormat<Message, System, Params>,
    options: ProjectOptions = {},
  ): Promise<Context<Message, System, Params>> {
    checkFormat(format);
    const { control, rest } = split(options);
    const { budget: limit, tools = [], ...others } = rest;
    const bounds = await withTools(limit, tools, async (of) => {
      const request = { ...of, format: format.wire };
      return (await this.#patience.call(() => this.stub.countTokens(request, control), control.signal)).tokens;
    });
    const request = { ...others, events: allNamed(events), format: format.wire, ...(bounds ? { budget: bounds } : {}) };
    return new Context(format, await this.#patience.call(() => new Delta().receive(this.stub.projectTranscript(request, control)), control.signal));
  }

  /** The size in tokens of a text, and of tools in the form of the request. */
  async countTokens(
    what: { text?: string; tools?: readonly unknown[]; model?: string; tokenizer?: string; format?: Format },
    options?: CallControl,
  ): Promise<number> {
    const { tools = [], ...rest } = checkObject("what", what);
    const request = { ...rest, toolsJson: jsonOf(tools) };
    const { tokens } = await this.#patience.call(() => this.stub.countTokens(request, options), options?.signal);
    return Number(tokens);
  }

  /** A transcript as one of the harness `to`. Nothing is stored. Without `harness`, the one that wrote it is detected. */
  async convertTranscript(
    source: TranscriptSource,
    to: string,
    options: CallControl & { harness?: string; harnessSessionId?: string; workingDirectory?: string } = {},
  ): Promise<Transcript> {
    const { control, rest } = split(options);
    const { harness = "", ...others } = rest;
    const data = await bytesOf(source);
    if (typeof harness !== "string") throw wrong("harness", "a string", harness);
    const requests = upload(ConvertHeaderSchema, { ...others, from: harness, to }, data);
    return await this.#patience.call(() => gathered(this.services.transcripts.convertTranscript(requests(), control)), control.signal);
  }

  /**
   * Lifecycle events of sessions, as they happen; it ends with the signal. Each event of the named
   * sessions is given exactly once, in order, even if the connection breaks.
   */
  watch(options: Following & { after?: Cursor[] } = {}): AsyncGenerator<LifecycleEvent> {
    return watch(this.services, this.#patience, options);
  }

  /** Serves hooks, one call after another, until the signal, a refusal, or a hook throws. */
  runHooks(hooks: Hooks): Promise<void> {
    return runHooks(this.services, this.#patience, hooks);
  }

  /** Writes the summaries that the daemon asks for, one after another, until the signal or a refusal. */
  runSummaries(worker: SummaryWorker): Promise<void> {
    return runSummaries(this.services, this.#patience, worker);
  }

  /** Closes the connection and aborts open calls. */
  close(): void {
    this.#patience.end();
    this.#connection.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }
}
