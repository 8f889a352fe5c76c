import { durationMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { BudgetExceededSchema, type IrreduciblePart } from "./gen/contextd/v1/assembly_pb.js";
import {
  BadRequestSchema,
  ErrorInfoSchema,
  ResourceInfoSchema,
  RetryInfoSchema,
} from "./gen/google/rpc/error_details_pb.js";

/** An invalid field, as a path in the request, and what is wrong with it. */
export interface FieldViolation {
  field: string;
  description: string;
}

/** The details of a daemon's error. */
export interface ErrorDetails {
  /** The gRPC status, such as FAILED_PRECONDITION. */
  code: string;
  /** One of the documented reasons, which never change their meaning; TRANSPORT for gRPC's own errors. */
  reason: string;
  metadata: Readonly<Record<string, string>>;
  violations: readonly FieldViolation[];
  resource: { type: string; name: string } | undefined;
  /** How long to wait before the next try. Absent: waiting does not help, or the time is unknown. */
  retryAfterMs: number | undefined;
}

/** The base of all failures of calls. Distinguish them by class or by reason. */
export class ContextdError extends Error {
  readonly code: string;
  readonly reason: string;
  readonly metadata: Readonly<Record<string, string>>;
  readonly violations: readonly FieldViolation[];
  readonly resource: { type: string; name: string } | undefined;
  readonly retryAfterMs: number | undefined;

  constructor(message: string, details: ErrorDetails, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
    this.code = details.code;
    this.reason = details.reason;
    this.metadata = details.metadata;
    this.violations = details.violations;
    this.resource = details.resource;
    this.retryAfterMs = details.retryAfterMs;
  }

  /** Whether no daemon answered: a daemon's error would have another reason. */
  get unanswered(): boolean {
    return this.code === "UNAVAILABLE" && this.reason === "TRANSPORT";
  }

  /** The first invalid field; empty if none is named. */
  get field(): string {
    return this.violations[0]?.field ?? "";
  }
}

/** INVALID_ARGUMENT: correct the named field. */
export class InvalidArgumentError extends ContextdError {}

/** NOT_FOUND: resource says what does not exist. */
export class NotFoundError extends ContextdError {}

/** ALREADY_EXISTS: a session's id is taken, or an event's id belongs to an event with other content. */
export class AlreadyExistsError extends ContextdError {}

/** ABORTED: somebody appended in between; read the log up to headSeq and append again. */
export class HeadMismatchError extends ContextdError {
  /** The newest seq of the log. */
  get headSeq(): bigint {
    return BigInt(this.metadata["head_seq"] ?? "0");
  }
}

/**
 * FAILED_PRECONDITION: the log is no longer the one that was appended to or read. It is gone,
 * shorter, of another session with the same id, or has other events in their place: the daemon's
 * store was lost or restored, or somebody deleted the session. Nothing was appended. If you have
 * the whole conversation, call Session.forget and append all of it again.
 */
export class LogLostError extends ContextdError {
  /** The newest event that the client knows of. */
  get knownSeq(): bigint {
    return BigInt(this.metadata["known_seq"] ?? "0");
  }
  /** The newest event of the present log; 0 if there is none. */
  get headSeq(): bigint {
    return BigInt(this.metadata["head_seq"] ?? "0");
  }
}

/** FAILED_PRECONDITION: the context cannot be made to fit. Raise the budget or pin less. */
export class BudgetExceededError extends ContextdError {
  constructor(
    message: string,
    details: ErrorDetails,
    /** The most tokens that the messages may have. */
    readonly targetTokens: bigint,
    /** The fewest tokens that they can be reduced to. */
    readonly neededTokens: bigint,
    /** What cannot be reduced, largest first. */
    readonly parts: readonly Pick<IrreduciblePart, "what" | "seq" | "tokens">[],
    options?: ErrorOptions,
  ) {
    super(message, details, options);
  }
}

/** FAILED_PRECONDITION: an injection is larger than its reserve. Shorten it or reserve more. */
export class InjectionOverReserveError extends ContextdError {
  get injection(): string {
    return this.metadata["injection"] ?? "";
  }
  get tokens(): number {
    return Number(this.metadata["tokens"]);
  }
  get reserveTokens(): number {
    return Number(this.metadata["reserve_tokens"]);
  }
}

/** FAILED_PRECONDITION: the daemon is not configured for what was asked. */
export class NotConfiguredError extends ContextdError {}

/** RESOURCE_EXHAUSTED: a limit of the daemon was exceeded; metadata names the setting. */
export class LimitExceededError extends ContextdError {}

/** UNAVAILABLE: the daemon cannot be reached, is stopping, or its store failed. Appends with event ids can be retried. */
export class UnavailableError extends ContextdError {}

/** The received context does not match the daemon's hash. It was discarded. */
export class HashMismatchError extends Error {
  override readonly name = "HashMismatchError";
  constructor(
    readonly want: string,
    readonly got: string,
  ) {
    super(`the messages hash to ${got}; the daemon says ${want}`);
  }
}

/** The gRPC name of a status: FailedPrecondition becomes FAILED_PRECONDITION. */
function codeName(code: Code): string {
  if (code === Code.Canceled) return "CANCELLED";
  return Code[code].replace(/(?<=[a-z])(?=[A-Z])/g, "_").toUpperCase();
}

/**
 * Whether there was no connection, or it broke, or it accepts no more calls because the daemon stops.
 * Connect reports a broken connection as a cancelled call, and the others as internal errors.
 */
function broken({ code, rawMessage }: ConnectError): boolean {
  return code === Code.Aborted || (code === Code.Canceled && rawMessage.startsWith("http/2 stream closed")) || rawMessage.endsWith("NGHTTP2_REFUSED_STREAM") || /^connect E[A-Z]+ /.test(rawMessage);
}

/** Converts an error of a call to an address into a ContextdError. Other errors are returned unchanged. */
export function toError(cause: unknown, address: string): unknown {
  if (!(cause instanceof ConnectError)) return cause;
  const info = cause.findDetails(ErrorInfoSchema).find((i) => i.domain === "contextd");
  const retry = cause.findDetails(RetryInfoSchema)[0]?.retryDelay;
  const resource = cause.findDetails(ResourceInfoSchema)[0];
  const code = !info && broken(cause) ? Code.Unavailable : cause.code;
  const details: ErrorDetails = {
    code: codeName(code),
    reason: info?.reason ?? "TRANSPORT",
    metadata: info?.metadata ?? {},
    violations: cause
      .findDetails(BadRequestSchema)
      .flatMap((b) => b.fieldViolations)
      .map(({ field, description }) => ({ field, description })),
    resource: resource && { type: resource.resourceType, name: resource.resourceName },
    retryAfterMs: retry && durationMs(retry),
  };
  const exceeded = cause.findDetails(BudgetExceededSchema)[0];
  if (exceeded) {
    const { targetTokens, neededTokens, parts } = exceeded;
    return new BudgetExceededError(cause.rawMessage, details, targetTokens, neededTokens, parts, { cause });
  }
  const unanswered = code === Code.Unavailable && !info;
  const message = unanswered || (!info && oneSideOfTLS(cause)) ? unansweredMessage(address, cause) : cause.rawMessage;
  return new (classOf(details, code))(message, details, { cause });
}

/** Whether only one side uses TLS, or one does not trust the other's certificate. */
function oneSideOfTLS({ code, rawMessage }: ConnectError): boolean {
  if (rawMessage.startsWith("http/2 stream closed")) return true;
  return (code === Code.Internal || code === Code.Unknown) && /certificate|SSL routines/.test(rawMessage);
}

function unansweredMessage(address: string, failed: ConnectError): string {
  const cause = failed.rawMessage.trim();
  if (/SSL alert number/.test(cause)) {
    return `no connection with ${address} (${cause}): CONTEXTD_CERT and CONTEXTD_KEY must be a certificate for clients that is valid now, of an authority in the daemon's tls_client_ca`;
  }
  if (!address.startsWith("unix:") && oneSideOfTLS(failed)) {
    return `no connection with ${address} (${cause}): if the daemon there speaks TLS, CONTEXTD_CA must name the authority of its certificate; if it does not, it must be empty`;
  }
  return address.startsWith("unix:") && /EACCES|permission denied/i.test(cause)
    ? `no permission to connect to ${address} (${cause}): call as the socket's owner, or have the daemon admit others by unix_socket_mode`
    : `no daemon answers at ${address} (${cause}): start one with "contextd serve", or set CONTEXTD_ADDR`;
}

function classOf(details: ErrorDetails, code: Code): typeof ContextdError {
  if (details.reason === "INJECTION_OVER_RESERVE") return InjectionOverReserveError;
  if (details.reason === "LOG_LOST") return LogLostError;
  if (details.reason === "NOT_CONFIGURED") return NotConfiguredError;
  switch (code) {
    case Code.InvalidArgument:
      return InvalidArgumentError;
    case Code.NotFound:
      return NotFoundError;
    case Code.AlreadyExists:
      return AlreadyExistsError;
    case Code.Aborted:
      return HeadMismatchError;
    case Code.ResourceExhausted:
      return LimitExceededError;
    case Code.Unavailable:
      return UnavailableError;
    default:
      return ContextdError;
  }
}
