import type { ClientHttp2Session, ClientHttp2Stream, ClientSessionRequestOptions, OutgoingHttpHeaders } from "node:http2";
import { Code, ConnectError } from "@connectrpc/connect";
import { Http2SessionManager } from "@connectrpc/connect-node";

/**
 * The connection of a client. A daemon that stops sends GOAWAY. Connect then destroys the session with
 * an error, which Node emits later. A request in between removes Connect's listeners, and an error
 * without a listener would end the process.
 */
export class Connection extends Http2SessionManager {
  readonly #heard = new WeakSet<ClientHttp2Session>();
  #closed = false;

  /** Ends open calls, and refuses later ones, which would connect again and keep the process running. */
  close(): void {
    this.#closed = true;
    this.abort();
  }

  override async request(
    method: string,
    path: string,
    headers: OutgoingHttpHeaders,
    options: Omit<ClientSessionRequestOptions, "signal">,
  ): Promise<ClientHttp2Stream> {
    if (this.#closed) throw new ConnectError("the client is closed", Code.Canceled);
    const stream = await super.request(method, path, headers, options);
    const session = stream.session as ClientHttp2Session | undefined;
    if (session && !this.#heard.has(session)) {
      this.#heard.add(session);
      session.on("error", () => {}); // the calls of the session fail by themselves
    }
    return stream;
  }
}
