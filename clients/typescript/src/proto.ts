/** The messages and services of contextd.v1, as the protos describe them. */
export * from "./gen/contextd/v1/assembly_pb.js";
export * from "./gen/contextd/v1/budget_pb.js";
export * from "./gen/contextd/v1/compaction_pb.js";
export * from "./gen/contextd/v1/compaction_service_pb.js";
export * from "./gen/contextd/v1/context_service_pb.js";
export * from "./gen/contextd/v1/event_pb.js";
export * from "./gen/contextd/v1/format_pb.js";
export * from "./gen/contextd/v1/hooks_pb.js";
export * from "./gen/contextd/v1/lifecycle_pb.js";
export * from "./gen/contextd/v1/log_pb.js";
export * from "./gen/contextd/v1/policy_pb.js";
export * from "./gen/contextd/v1/projection_pb.js";
export * from "./gen/contextd/v1/replay_pb.js";
export * from "./gen/contextd/v1/session_pb.js";
export * from "./gen/contextd/v1/tokens_pb.js";
export * from "./gen/contextd/v1/transcript_pb.js";
export * from "./gen/contextd/v1/transcript_service_pb.js";
