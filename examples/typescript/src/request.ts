import type { MessageCreateParamsNonStreaming, MessageParam, TextBlockParam } from "@anthropic-ai/sdk/resources/messages";
import type { Content, GenerateContentParameters } from "@google/genai";
import type { ChatCompletionCreateParamsNonStreaming, ChatCompletionMessageParam } from "openai/resources/chat/completions";
import type { ContextHeader } from "./gen/contextd/v1/assembly_pb.js";
import type { HeldContext } from "./held.js";

/** Parses what is held: new values at every call, so that marks never get into what is kept. */
function parsed(held: HeldContext): { system: object | undefined; messages: unknown[] } {
  const values = held.messages.map((m) => JSON.parse(new TextDecoder().decode(m.json)) as object);
  return held.messages[0]?.system ? { system: values[0], messages: values.slice(1) } : { system: undefined, messages: values };
}

/** The request for Anthropic's SDK, with the marks of its cache where the header says. */
export function anthropicRequest(held: HeldContext, model: string): MessageCreateParamsNonStreaming {
  const { system, messages } = parsed(held) as { system: { system: TextBlockParam[] } | undefined; messages: MessageParam[] };
  const all = [...(system ? [system.system] : []), ...messages.map((m) => m.content)];
  for (const { messageIndex, contentIndex } of held.header?.cacheBreakpoints ?? []) {
    const content = all[messageIndex];
    if (!Array.isArray(content)) continue;
    const item = content.at(contentIndex ?? -1);
    if (item && item.type !== "thinking" && item.type !== "redacted_thinking") {
      (item as TextBlockParam).cache_control = { type: "ephemeral" };
    }
  }
  return { model, max_tokens: 1024, ...system, messages };
}

/** The request for OpenAI's SDK. */
export function openaiRequest(held: HeldContext, model: string): ChatCompletionCreateParamsNonStreaming {
  const { messages } = parsed(held);
  return { model, messages: messages as ChatCompletionMessageParam[], ...cacheKey(held.header) };
}

function cacheKey(header: ContextHeader | undefined): { prompt_cache_key?: string } {
  return header?.promptCacheKey ? { prompt_cache_key: header.promptCacheKey } : {};
}

/** The request for Google's SDK. */
export function geminiRequest(held: HeldContext, model: string): GenerateContentParameters {
  const { system, messages } = parsed(held) as { system: { systemInstruction: Content } | undefined; messages: Content[] };
  return { model, contents: messages, ...(system ? { config: system } : {}) };
}
