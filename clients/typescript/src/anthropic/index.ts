/** Contexts for Anthropic's Messages API, and events from what it answers. */
export { anthropic, type AnthropicContext, type AnthropicParams } from "./format.js";
export { events, usage } from "./events.js";
