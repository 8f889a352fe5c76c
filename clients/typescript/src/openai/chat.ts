import type { ChatCompletion } from "openai/resources/chat/completions";
import { answered, asCount, asText, type BlockInit, beside, called, checkResponse, elements, type EventInit, providerBlock, text } from "../events.js";
import type { ModelCall } from "../session.js";
import { freeInput, said } from "./content.js";

const api = "OpenAI's Chat Completions";

/** The response's first choice, as events to append. */
export function chatEvents(response: ChatCompletion): EventInit[] {
  checkResponse(api, response, "choices");
  const choices = elements(response.choices);
  if (choices.length === 0) throw new TypeError("choices: the response has none");
  const message = choices[0]?.message;
  if (message?.function_call) throw new TypeError("function_call: is not read; give the call in tool_calls");
  const blocks: BlockInit[] = message ? reasoning(message) : [];
  blocks.push(...said(message?.content));
  const { images } = (message ?? {}) as { images?: unknown[] }; // of OpenRouter's
  blocks.push(...said(elements(images)));
  if (asText(message?.audio?.transcript)) blocks.push(text(message!.audio!.transcript));
  else if (message?.audio) blocks.push(providerBlock("openai", { type: "audio", audio: message.audio }));
  if (message?.refusal) blocks.push(providerBlock("openai", { type: "refusal", refusal: message.refusal }));
  for (const call of elements(message?.tool_calls)) {
    const { function: given, custom } = call as { function?: Partial<Called> | null; custom?: Partial<Called> | null };
    const made = typeof given === "object" ? given : null;
    const args = made ? made.arguments : freeInput(custom?.input);
    blocks.push(...called(besideCall(call), call.id, (made ?? custom)?.name, args));
  }
  return answered(response.id, response.model, blocks);
}

/**
 * A message's reasoning. Servers with this API name its text, which the API does not have, in one of two ways. The hosts
 * OpenRouter and LiteLLM give what a model's maker sealed as lists. A seal holds for the whole list, which must come back
 * as it was, so the lists are the signature.
 */
function reasoning(message: object): BlockInit[] {
  const members = message as Record<string, unknown>;
  let texts: string[] = [];
  const sealed: [string, object][] = [];
  for (const name of ["reasoning_details", "thinking_blocks"]) {
    const list: unknown = members[name];
    if (!Array.isArray(list)) continue;
    if (texts.length === 0) texts = list.map((detail) => firstText(detail, "text", "summary", "thinking")).filter(Boolean);
    if (list.some((detail) => firstText(detail, "signature", "data"))) sealed.push([name, list]);
  }
  const text = firstText(members, "reasoning_content", "reasoning") || texts.join("\n\n");
  if (!text && sealed.length === 0) return [];
  const signature = sealed.length > 0 ? JSON.stringify(Object.fromEntries(sealed)) : "";
  return [{ kind: { case: "thinking", value: { text, signature } } }];
}

interface Called {
  name: string;
  arguments: string;
  input: string;
}

/** The first of an object's members that is a text and not empty; else empty. */
function firstText(object: unknown, ...names: string[]): string {
  if (typeof object !== "object" || object === null) return "";
  const members = object as Record<string, unknown>;
  return names.map((name) => asText(members[name])).find(Boolean) ?? "";
}

/** The members in which hosts give Google's signature of a call: Google itself, or LiteLLM, which may have them in the function. */
function besideCall(call: object): BlockInit[] {
  const { function: inner } = call as { function?: object | null };
  const given = beside("openai", call, "extra_content");
  if (given.length > 0) return given;
  for (const of of [call, inner ?? {}]) {
    const { provider_specific_fields: fields } = of as { provider_specific_fields?: Record<string, unknown> | null };
    if ((fields?.["thought_signature"] ?? fields?.["thought_signatures"]) != null) return beside("openai", of, "provider_specific_fields");
  }
  return [];
}

/** The provider's token counts, for Session.recordModelCall. */
export function chatUsage(response: ChatCompletion): ModelCall {
  checkResponse(api, response, "choices");
  return {
    model: asText(response.model),
    inputTokens: asCount(response.usage?.prompt_tokens),
    cacheReadTokens: asCount(response.usage?.prompt_tokens_details?.cached_tokens),
    cacheWriteTokens: asCount(response.usage?.prompt_tokens_details?.cache_write_tokens),
    outputTokens: asCount(response.usage?.completion_tokens),
    stopReason: asText(response.choices[0]?.finish_reason),
  };
}
