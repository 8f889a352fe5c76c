import type { Blob, GenerateContentResponse, Part } from "@google/genai";
import { answered, asCount, asText, type BlockInit, beside, bytesOf, called, checkResponse, elements, type EventInit, media, providerBlock, text } from "../events.js";
import type { ModelCall } from "../session.js";

/** Throws if it is not a response. A response that was blocked has no candidates. */
function check(response: GenerateContentResponse): void {
  checkResponse("Gemini's", response, "candidates", "promptFeedback", "usageMetadata", "responseId");
}

/**
 * The response's first candidate, as events to append. Gemini gives most calls no id; they get
 * one made of the response's id and a number (see callIds).
 */
export function events(response: GenerateContentResponse): EventInit[] {
  check(response);
  const candidates = elements(response.candidates);
  if (candidates.length === 0 && !response.promptFeedback) throw new TypeError("candidates: the response has none");
  const parts = elements(candidates[0]?.content?.parts);
  const ids = callIds(response);
  let calls = 0;
  const blocks = parts.flatMap((p) => part(p, () => ids[calls++]!));
  return answered(response.responseId, response.modelVersion, blocks);
}

/** The ids of the response's calls, in order; results must use these. */
export function callIds(response: GenerateContentResponse): string[] {
  const calls = elements(response.candidates?.[0]?.content?.parts).flatMap((p) => p.functionCall ?? []);
  let missing = 0;
  return calls.map((c) => asText(c.id) || `${asText(response.responseId) || "call"}_${missing++}`);
}

function part(p: Part, nextId: () => string): BlockInit[] {
  const { thought, thoughtSignature: given, ...rest } = p;
  const thoughtSignature = asText(given);
  const names = Object.keys(rest).filter((name) => rest[name as keyof typeof rest] != null);
  if (thought && names.every((name) => name === "text")) {
    if (!asText(p.text) && !thoughtSignature) return [];
    return [{ kind: { case: "thinking", value: { text: asText(p.text), signature: thoughtSignature } } }];
  }
  // A signature goes before the part that it belongs to.
  const before = thoughtSignature ? [providerBlock("google", { thoughtSignature })] : [];
  if (p.functionCall) {
    const others = names.filter((name) => name !== "functionCall").sort(); // metadata
    return called([...beside("google", p, ...others), ...before], nextId(), p.functionCall.name, p.functionCall.args);
  }
  if (names.length === 1 && typeof p.text === "string") return p.text === "" ? before : [...before, text(p.text)];
  const file = names.length === 1 && !thought && p.inlineData ? fileOf(p.inlineData) : undefined;
  return file ? [...before, file] : [providerBlock("google", p)];
}

/** The media of a part. Files that are texts are not media: only Gemini accepts these as files. */
function fileOf({ mimeType = "", data = "" }: Blob): BlockInit | undefined {
  const bytes = bytesOf(asText(data).replace(/-/g, "+").replace(/_/g, "/")); // of either alphabet
  const known = /^(image|audio|video)\/|^application\/pdf$/i.test(mimeType);
  return known && bytes ? media(mimeType, bytes) : undefined;
}

/** The provider's token counts, for Session.recordModelCall. */
export function usage(response: GenerateContentResponse): ModelCall {
  check(response);
  const counted = response.usageMetadata;
  return {
    model: asText(response.modelVersion),
    inputTokens: asCount(counted?.promptTokenCount),
    cacheReadTokens: asCount(counted?.cachedContentTokenCount),
    outputTokens: asCount(counted?.candidatesTokenCount) + asCount(counted?.thoughtsTokenCount),
    stopReason: asText(response.candidates?.[0]?.finishReason),
  };
}
