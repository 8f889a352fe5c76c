/** Contexts for Google's Gemini API, and events from its responses. */
export { gemini, type GeminiContext, type GeminiParams } from "./format.js";
export { callIds, events, usage } from "./events.js";
