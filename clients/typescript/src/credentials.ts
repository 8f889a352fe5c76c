import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import type { SecureClientSessionOptions } from "node:http2";
import { BlockList, isIP } from "node:net";
import type { Interceptor } from "@connectrpc/connect";

/**
 * How a client verifies the daemon, and authenticates itself; all are names of files. Without
 * any, there is neither TLS nor authentication, as for a socket or loopback.
 */
export interface Credentials {
  /** The authority of the daemon's certificate, in PEM, or "system" for Node's own. Absent: no TLS. */
  ca?: string;
  /** The client's certificate, in PEM. */
  cert?: string;
  /** The key of cert, in PEM. */
  key?: string;
  /** The bearer token of calls. It is read at each call, so it may be renewed. */
  tokenFile?: string;
}

/** The credentials in CONTEXTD_CA, CONTEXTD_CERT, CONTEXTD_KEY and CONTEXTD_TOKEN_FILE. */
export function credentialsOfEnvironment(): Credentials {
  const { CONTEXTD_CA: ca, CONTEXTD_CERT: cert, CONTEXTD_KEY: key, CONTEXTD_TOKEN_FILE: tokenFile } = process.env;
  return { ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }), ...(tokenFile && { tokenFile }) };
}

/** The TLS options of a connection to an address; undefined without TLS. */
export function tlsOptions({ ca, cert, key, tokenFile }: Credentials, address: string): SecureClientSessionOptions | undefined {
  if (!cert !== !key) throw new Error("cert and key must both be set, or neither");
  if (!ca) {
    if (cert) throw new Error("cert and key must not be set without ca: there is no TLS");
    if (tokenFile && !isLocal(address)) throw new Error(`the token could be read on the way to ${address}: set ca`);
    return undefined;
  }
  if (address.startsWith("unix:")) throw new Error("ca must not be set for a unix socket: it is not encrypted");
  return {
    minVersion: "TLSv1.3",
    ...(ca === "system" ? {} : { ca: readFileSync(ca) }),
    ...(cert && key ? { cert: readFileSync(cert), key: readFileSync(key) } : {}),
  };
}

/** Adds the token of a file to each call. */
export function bearer(tokenFile: string): Interceptor {
  return (next) => async (request) => {
    const token = (await readFile(tokenFile, "utf8")).trim();
    // An invalid header's error would contain the token.
    if (!/^[ -~]*$/.test(token)) throw new Error(`token file: ${tokenFile} must hold one line of ASCII, the token`);
    request.header.set("authorization", `Bearer ${token}`);
    return await next(request);
  };
}

const loopback = new BlockList();
loopback.addSubnet("127.0.0.0", 8);
loopback.addAddress("::1", "ipv6");

/** Whether nobody else can read what is sent to an address. */
function isLocal(address: string): boolean {
  const host = address.replace(/:\d+$/, "").replace(/^\[(.*)\]$/, "$1");
  return address.startsWith("unix:") || host === "localhost" || (isIP(host) > 0 && loopback.check(host, isIP(host) === 6 ? "ipv6" : "ipv4"));
}
