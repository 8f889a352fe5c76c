import type { ChatCompletion } from "openai/resources/chat/completions";
import { answered, type BlockInit, beside, checkResponse, type EventInit, media, providerBlock, splitCallId, text, toolCall } from "../events.js";
import type { ModelCall } from "../session.js";
import { freeInput, said } from "./content.js";

const api = "OpenAI's Chat Completions";

/** The response's first choice, as events to append. */
export function chatEvents(response: ChatCompletion): EventInit[] {
  checkResponse(api, response, "choices");
  const message = response.choices[0]?.message;
  if (message?.function_call) throw new TypeError("function_call: is not read; give the call in tool_calls");
  const blocks: BlockInit[] = message ? reasoning(message) : [];
  blocks.push(...said(message?.content));
  const { images } = (message ?? {}) as { images?: unknown }; // of OpenRouter's
  if (Array.isArray(images)) blocks.push(...(images as Image[]).flatMap(image));
  if (message?.audio?.transcript) blocks.push(text(message.audio.transcript));
  else if (message?.audio) blocks.push(providerBlock("openai", { type: "audio", audio: message.audio }));
  if (message?.refusal) blocks.push(providerBlock("openai", { type: "refusal", refusal: message.refusal }));
  for (const call of message?.tool_calls ?? []) {
    blocks.push(...besideCall(call));
    if ("function" in call && call.function) blocks.push(toolCall(call.id, call.function.name, call.function.arguments ?? ""));
    else if ("custom" in call) blocks.push(toolCall(call.id, call.custom.name, freeInput(call.custom.input)));
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

interface Image {
  image_url?: { url?: string } | null;
}

/** An image that the model made, by its bytes or its URL. */
function image(part: Image): BlockInit[] {
  const url = part.image_url?.url ?? "";
  const [, mimeType, data] = /^data:([^;]*);base64,(.+)$/.exec(url) ?? [];
  if (data) return [media(mimeType!, Buffer.from(data, "base64"))];
  return URL.canParse(url) ? [media("", new URL(url))] : said([part]);
}

/** The first of an object's members that is a text and not empty; else empty. */
function firstText(object: unknown, ...names: string[]): string {
  if (typeof object !== "object" || object === null) return "";
  const members = object as Record<string, unknown>;
  return names.map((name) => members[name]).find((given): given is string => typeof given === "string" && given !== "") ?? "";
}

/** The members in which hosts give Google's signature of a call: Google itself, or LiteLLM, which may have them in the function. */
function besideCall(call: object): BlockInit[] {
  const { extra_content, function: inner } = call as { extra_content?: unknown; function?: object | null };
  if (extra_content) return beside("openai", call, "extra_content");
  for (const of of [call, inner ?? {}]) {
    const { provider_specific_fields: fields } = of as { provider_specific_fields?: Record<string, unknown> | null };
    if ((fields?.["thought_signature"] ?? fields?.["thought_signatures"]) != null) return beside("openai", of, "provider_specific_fields");
  }
  const [, signature] = splitCallId((call as { id: string }).id);
  return signature ? [providerBlock("openai", { provider_specific_fields: { thought_signature: signature } })] : [];
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
