/** Contexts for Anthropic's Messages API, and events from its responses. */
export { anthropic, type AnthropicContext, type AnthropicParams } from "./format.js";
export { events, usage } from "./events.js";
