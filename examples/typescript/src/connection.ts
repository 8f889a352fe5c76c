import { connect as connectSocket } from "node:net";
import { type Client, createClient } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { ContextService } from "./gen/contextd/v1/context_service_pb.js";

export type ContextClient = Client<typeof ContextService>;

/** Connects to host:port or unix:///path, with the first call. */
export function connect(address: string): { client: ContextClient; close(): void } {
  const path = /^unix:(?:\/\/)?(\/.*)$/.exec(address)?.[1];
  const baseUrl = path ? "http://localhost" : `http://${address}`;
  const socket = path ? { createConnection: () => connectSocket(path) } : {};
  const sessionManager = new Http2SessionManager(baseUrl, {}, socket);
  return {
    client: createClient(ContextService, createGrpcTransport({ baseUrl, sessionManager })),
    close: () => sessionManager.abort(),
  };
}
