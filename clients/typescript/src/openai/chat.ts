import type { ChatCompletion } from "openai/resources/chat/completions";
import { answered, type BlockInit, checkResponse, type EventInit, providerBlock, text, toolCall } from "../events.js";
import type { ModelCall } from "../session.js";
import { freeInput, said } from "./content.js";

const api = "OpenAI's Chat Completions";

/** The response's first choice, as events to append. */
export function chatEvents(response: ChatCompletion): EventInit[] {
  checkResponse(api, response, "choices");
  const message = response.choices[0]?.message;
  if (message?.function_call) throw new TypeError("function_call: is not read; give the call in tool_calls");
  const blocks: BlockInit[] = [];
  // Servers with this API name reasoning, which the API does not have, in one of these ways.
  const named = (message ?? {}) as { reasoning_content?: unknown; reasoning?: unknown };
  const reasoned = [named.reasoning_content, named.reasoning].find((given) => given && typeof given === "string");
  if (reasoned) blocks.push({ kind: { case: "thinking", value: { text: reasoned as string } } });
  blocks.push(...said(message?.content));
  if (message?.audio?.transcript) blocks.push(text(message.audio.transcript));
  else if (message?.audio) blocks.push(providerBlock("openai", { type: "audio", audio: message.audio }));
  if (message?.refusal) blocks.push(providerBlock("openai", { type: "refusal", refusal: message.refusal }));
  for (const call of message?.tool_calls ?? []) {
    if ("function" in call && call.function) blocks.push(toolCall(call.id, call.function.name, call.function.arguments ?? ""));
    else if ("custom" in call) blocks.push(toolCall(call.id, call.custom.name, freeInput(call.custom.input)));
  }
  return answered(response.id, response.model, blocks);
}

/** The provider's token counts, for Session.recordModelCall. */
export function chatUsage(response: ChatCompletion): ModelCall {
  checkResponse(api, response, "choices");
  return {
    model: response.model ?? "",
    inputTokens: response.usage?.prompt_tokens ?? 0,
    cacheReadTokens: response.usage?.prompt_tokens_details?.cached_tokens ?? 0,
    cacheWriteTokens: response.usage?.prompt_tokens_details?.cache_write_tokens ?? 0,
    outputTokens: response.usage?.completion_tokens ?? 0,
    stopReason: response.choices[0]?.finish_reason ?? "",
  };
}
