/** A language model middleware for the AI SDK, whose prompts go through a session. */
export { contextdMiddleware, type MiddlewareOptions } from "./middleware.js";
export { PromptDivergedError } from "./history.js";
