/** Client of contextd: append what happens, assemble the context of the next model call. */
export type { BudgetInit } from "./budget.js";
export { Client, type ClientOptions, defaultAddress } from "./client.js";
export { Context } from "./context.js";
export type { Credentials } from "./credentials.js";
export {
  AlreadyExistsError,
  BudgetExceededError,
  ContextdError,
  type ErrorDetails,
  type FieldViolation,
  HashMismatchError,
  HeadMismatchError,
  InjectionOverReserveError,
  InvalidArgumentError,
  LimitExceededError,
  LogLostError,
  NotConfiguredError,
  NotFoundError,
  UnavailableError,
} from "./errors.js";
export {
  assistant,
  type BlockInit,
  type Content,
  type EventInit,
  media,
  message,
  type MessageOptions,
  providerBlock,
  reminder,
  system,
  text,
  toolCall,
  toolResult,
  user,
} from "./events.js";
export type { MessageFormat } from "./format.js";
export { hashOf } from "./hash.js";
export { own, type OwnBlock, type OwnContext, type OwnMessage } from "./own.js";
export type { RetryOptions } from "./patience.js";
export type { ModelCall as RecordedCall } from "./gen/contextd/v1/tokens_pb.js";
export type { RecallResult, RecallTools } from "./recall.js";
export type { Cursor, Following, HookDecision, Hooks, SummaryWorker, WrittenSummary } from "./runtime.js";
export type { CallControl, Services } from "./services.js";
export { type AssembleOptions, type CompactOptions, type ExportOptions, type ModelCall, type ProjectOptions, Session } from "./session.js";
export { type Sidecar, type SidecarOptions, startSidecar } from "./sidecar.js";
export type { Transcript, TranscriptSource } from "./transcripts.js";
