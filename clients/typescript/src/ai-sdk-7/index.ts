/** A language model middleware for version 7 of the AI SDK: prompts become the context of a session. */
export { contextdMiddleware } from "./middleware.js";
export type { MiddlewareOptions } from "../ai-sdk/middleware.js";
export { type Diverged, PromptDivergedError } from "../ai-sdk/history.js";
