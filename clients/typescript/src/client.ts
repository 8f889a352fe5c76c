import { connect as connectSocket } from "node:net";
import { createClient, type Client as Stub } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { ContextService } from "./gen/contextd/v1/context_service_pb.js";
import type { BudgetInit } from "./budget.js";
import { budget } from "./budget.js";
import { bearer, type Credentials, credentialsOfEnvironment, tlsOptions } from "./credentials.js";
import { Patience, type RetryOptions } from "./patience.js";
import { type CallControl, Session } from "./session.js";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { PolicySchema } from "./gen/contextd/v1/policy_pb.js";

/** Where a daemon listens by default. */
export const defaultAddress = "127.0.0.1:7171";

/** How a client calls the daemon. */
export interface ClientOptions extends RetryOptions {
  credentials?: Credentials;
}

/** A connection to a daemon. Close it to let the process end. */
export class Client {
  /** Every RPC of contextd.v1.ContextService, without what this package adds. */
  readonly stub: Stub<typeof ContextService>;
  readonly #connection: Http2SessionManager;
  readonly #patience: Patience;

  /**
   * Connects with the first call. The address is host:port or unix:///path; without one it
   * is CONTEXTD_ADDR or the daemon's default. Credentials that are absent are those of the
   * environment.
   */
  constructor(address: string = process.env["CONTEXTD_ADDR"] || defaultAddress, options: ClientOptions = {}) {
    this.#patience = new Patience(address, options);
    const credentials = options.credentials ?? credentialsOfEnvironment();
    const secured = tlsOptions(credentials, address);
    const path = /^unix:(?:\/\/)?(\/.*)$/.exec(address)?.[1];
    const baseUrl = path ? "http://localhost" : `${secured ? "https" : "http"}://${address}`;
    const socket = path ? { createConnection: () => connectSocket(path) } : {};
    this.#connection = new Http2SessionManager(baseUrl, {}, secured ?? socket);
    const interceptors = credentials.tokenFile ? [bearer(credentials.tokenFile)] : [];
    this.stub = createClient(ContextService, createGrpcTransport({ baseUrl, interceptors, sessionManager: this.#connection }));
  }

  /** A session by its id. It need not exist: the first append makes it. */
  session(id: string): Session {
    return new Session(this.stub, id, this.#patience);
  }

  /** Makes a session with settings of its own; an AlreadyExistsError where there is one. */
  async createSession(
    id: string,
    settings: { budget?: BudgetInit; policy?: MessageInitShape<typeof PolicySchema>; labels?: Record<string, string> } = {},
    options?: CallControl,
  ): Promise<Session> {
    const { budget: limit, ...rest } = settings;
    const request = { sessionId: id, ...rest, ...(limit ? { budget: budget(limit) } : {}) };
    const { session } = await this.#patience.call(() => this.stub.createSession(request, options), options?.signal);
    return new Session(this.stub, id, this.#patience, session);
  }

  /** Ends the connection and the calls that are open. */
  close(): void {
    this.#connection.abort();
  }

  [Symbol.dispose](): void {
    this.close();
  }
}
