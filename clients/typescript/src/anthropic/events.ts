import type { ContentBlock, Message } from "@anthropic-ai/sdk/resources/messages";
import { answered, asCount, asText, type BlockInit, beside, called, checkResponse, contentOf, elements, type EventInit, providerBlock } from "../events.js";
import type { ModelCall } from "../session.js";

const api = "Anthropic's Messages";

/**
 * The model's response, as events to append. Blocks that only Anthropic has, and texts with
 * citations, are kept unchanged. The SDK has parsed the arguments of calls, so numbers that
 * JavaScript cannot represent have changed.
 */
export function events(response: Message): EventInit[] {
  checkResponse(api, response, "content");
  return answered(response.id, response.model, contentOf(response.content, block));
}

function block(b: ContentBlock): BlockInit[] {
  switch (b.type) {
    case "text":
      if (b.citations?.length) return [providerBlock("anthropic", b)];
      return contentOf(asText(b.text), block);
    case "thinking":
      return [{ kind: { case: "thinking", value: { text: asText(b.thinking), signature: asText(b.signature) } } }];
    case "redacted_thinking":
      return [{ kind: { case: "thinking", value: { redactedData: new TextEncoder().encode(asText(b.data)) } } }];
    case "tool_use":
      return called(beside("anthropic", b, "caller", "toolset_name"), b.id, b.name, b.input);
    default:
      return [providerBlock("anthropic", b)];
  }
}

/** The provider's token counts, for Session.recordModelCall. */
export function usage(response: Message): ModelCall {
  checkResponse(api, response, "usage", "content");
  const { stop_reason } = response;
  const usage: Partial<typeof response.usage> = response.usage ?? {};
  // Where Anthropic's servers ran tools, it adds up the prompts of the model's calls, of which the first was sent.
  const { iterations } = usage as { iterations?: (Partial<typeof usage> & { type: string })[] | null };
  const prompt = elements(iterations).find(({ type }) => type === "message") ?? usage;
  const read = asCount(prompt.cache_read_input_tokens);
  const written = asCount(prompt.cache_creation_input_tokens);
  return {
    model: asText(response.model),
    inputTokens: asCount(prompt.input_tokens) + read + written,
    cacheReadTokens: read,
    cacheWriteTokens: written,
    outputTokens: asCount(usage.output_tokens),
    stopReason: asText(stop_reason),
  };
}
