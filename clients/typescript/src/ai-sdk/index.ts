/** A language model middleware for the AI SDK: prompts become the context of a session. */
export { contextdMiddleware, type MiddlewareOptions } from "./middleware.js";
export { type Diverged, PromptDivergedError } from "./history.js";
