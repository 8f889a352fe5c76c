/** A language model middleware for the AI SDK: prompts become the context of a session. */
export { contextdMiddleware, type MiddlewareOptions } from "./middleware.js";
export { PromptDivergedError } from "./history.js";
