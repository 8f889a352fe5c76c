/** Contexts for OpenAI's Chat Completions and Responses, and events from their responses. */
export {
  openaiChat,
  openaiResponses,
  type ChatContext,
  type ChatParams,
  type ResponsesContext,
  type ResponsesParams,
} from "./format.js";
export { chatEvents, chatUsage } from "./chat.js";
export { responsesEvents, responsesUsage } from "./responses.js";
