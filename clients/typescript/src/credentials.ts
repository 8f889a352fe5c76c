import { readFileSync } from "node:fs";
import type { SecureClientSessionOptions } from "node:http2";
import { BlockList, isIP } from "node:net";
import type { Interceptor } from "@connectrpc/connect";
import { checkNone, checkObject, wrong } from "./members.js";

/**
 * How a client verifies the daemon, and authenticates itself; all are names of files. Without
 * any there is neither TLS nor authentication, for a socket or loopback.
 */
export interface Credentials {
  /** The authority of the daemon's certificate, in PEM, or "system" for Node's own. Absent: no TLS. */
  ca?: string;
  /** The client's certificate, in PEM. */
  cert?: string;
  /** The key of cert, in PEM. */
  key?: string;
  /** The bearer token. The file is read at each call, so the token may be renewed. */
  tokenFile?: string;
}

/** The credentials in CONTEXTD_CA, CONTEXTD_CERT, CONTEXTD_KEY and CONTEXTD_TOKEN_FILE. */
export function credentialsOfEnvironment(): Credentials {
  const { CONTEXTD_CA: ca, CONTEXTD_CERT: cert, CONTEXTD_KEY: key, CONTEXTD_TOKEN_FILE: tokenFile } = process.env;
  return { ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }), ...(tokenFile && { tokenFile }) };
}

/** The TLS options of a connection to an address; undefined without TLS. */
export function tlsOptions(credentials: Credentials, address: string): SecureClientSessionOptions | undefined {
  const { ca, cert, key, tokenFile, ...others } = checkObject("credentials", credentials);
  checkNone("credentials", others);
  for (const [name, file] of Object.entries({ ca, cert, key, tokenFile })) {
    if (file !== undefined && typeof file !== "string") throw wrong(`credentials.${name}`, "the name of a file", file);
  }
  if (!cert !== !key) throw new Error("cert and key must both be set, or neither");
  if (!ca) {
    if (cert) throw new Error("cert and key must not be set without ca: there is no TLS");
    if (tokenFile && !isLocal(address)) throw new Error(`the token could be read on the way to ${address}: set ca`);
    return undefined;
  }
  if (address.startsWith("unix:")) throw new Error("ca must not be set for a unix socket: it is not encrypted");
  return {
    minVersion: "TLSv1.3",
    ...(ca === "system" ? {} : { ca: read("ca", ca) }),
    ...(cert && key ? { cert: read("cert", cert), key: read("key", key) } : {}),
  };
}

/** A file's bytes. The error names what the file is for. */
function read(name: keyof Credentials, file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (cause) {
    throw new Error(`${name}: ${(cause as Error).message}`, { cause });
  }
}

/** Adds the token of a file to each call. */
export function bearer(tokenFile: string): Interceptor {
  return (next) => async (request) => {
    const token = read("tokenFile", tokenFile).toString().trim();
    // An invalid header's error would contain the token.
    if (!/^[ -~]*$/.test(token)) throw new Error(`tokenFile: ${tokenFile} must hold one line of ASCII, the token`);
    request.header.set("authorization", `Bearer ${token}`);
    return await next(request);
  };
}

const loopback = new BlockList();
loopback.addSubnet("127.0.0.0", 8);
loopback.addAddress("::1", "ipv6");

/** Whether an address is on this machine, so that nobody on the network can read the calls. */
function isLocal(address: string): boolean {
  const host = address.replace(/:\d+$/, "").replace(/^\[(.*)\]$/, "$1");
  return address.startsWith("unix:") || host === "localhost" || (isIP(host) > 0 && loopback.check(host, isIP(host) === 6 ? "ipv6" : "ipv4"));
}
