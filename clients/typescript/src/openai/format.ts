import type { ChatCompletionFunctionTool, ChatCompletionMessageParam } from "openai/resources/chat/completions";
import type { FunctionTool, ResponseInputItem } from "openai/resources/responses/responses";
import type { Context } from "../context.js";
import type { MessageFormat } from "../format.js";
import { Format } from "../gen/contextd/v1/format_pb.js";

/** The parameters of chat.completions.create that come from a context. */
export interface ChatParams {
  messages: ChatCompletionMessageParam[];
  prompt_cache_key?: string;
}

/** The parameters of responses.create that come from a context. */
export interface ResponsesParams {
  input: ResponseInputItem[];
  prompt_cache_key?: string;
}

/** Contexts in OpenAI's types. The system prompt is their first message. */
export type ChatContext = Context<ChatCompletionMessageParam, undefined, ChatParams>;
export type ResponsesContext = Context<ResponseInputItem, undefined, ResponsesParams>;

/** OpenAI's Chat Completions API. */
export const openaiChat: MessageFormat<ChatCompletionMessageParam, undefined, ChatParams, ChatCompletionFunctionTool> = {
  wire: Format.OPENAI_CHAT,
  list: "messages",
  systemMember: "",
  params: ({ messages, promptCacheKey }) => ({ messages, ...key(promptCacheKey) }),
};

/** OpenAI's Responses API. */
export const openaiResponses: MessageFormat<ResponseInputItem, undefined, ResponsesParams, FunctionTool> = {
  wire: Format.OPENAI_RESPONSES,
  list: "input",
  systemMember: "",
  params: ({ messages, promptCacheKey }) => ({ input: messages, ...key(promptCacheKey) }),
};

function key(promptCacheKey: string): { prompt_cache_key?: string } {
  return promptCacheKey ? { prompt_cache_key: promptCacheKey } : {};
}
