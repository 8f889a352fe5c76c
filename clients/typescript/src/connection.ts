import type { ClientHttp2Session, ClientHttp2Stream, ClientSessionRequestOptions, OutgoingHttpHeaders } from "node:http2";
import { Http2SessionManager } from "@connectrpc/connect-node";

/**
 * The connection of a client. A daemon that stops says so with GOAWAY, whereupon Connect destroys the
 * session with an error, which Node emits later. A request that comes in between takes Connect's
 * listeners off, and an error that nobody listens to ends the process.
 */
export class Connection extends Http2SessionManager {
  readonly #heard = new WeakSet<ClientHttp2Session>();

  override async request(
    method: string,
    path: string,
    headers: OutgoingHttpHeaders,
    options: Omit<ClientSessionRequestOptions, "signal">,
  ): Promise<ClientHttp2Stream> {
    const stream = await super.request(method, path, headers, options);
    const session = stream.session as ClientHttp2Session | undefined;
    if (session && !this.#heard.has(session)) {
      this.#heard.add(session);
      session.on("error", () => {}); // the calls of the session fail by themselves
    }
    return stream;
  }
}
