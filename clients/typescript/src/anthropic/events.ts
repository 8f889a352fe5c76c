import type { ContentBlock, Message } from "@anthropic-ai/sdk/resources/messages";
import { answered, type BlockInit, beside, checkResponse, contentOf, type EventInit, providerBlock, text, toolCall } from "../events.js";
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
      return b.text ? [text(b.text)] : [];
    case "thinking":
      return [{ kind: { case: "thinking", value: { text: b.thinking ?? "", signature: b.signature ?? "" } } }];
    case "redacted_thinking":
      return [{ kind: { case: "thinking", value: { redactedData: new TextEncoder().encode(b.data) } } }];
    case "tool_use":
      return [...beside("anthropic", b, "caller", "toolset_name"), toolCall(b.id, b.name, (b.input ?? "") as object)];
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
  const prompt = iterations?.find(({ type }) => type === "message") ?? usage;
  const read = prompt.cache_read_input_tokens ?? 0;
  const written = prompt.cache_creation_input_tokens ?? 0;
  return {
    model: response.model ?? "",
    inputTokens: (prompt.input_tokens ?? 0) + read + written,
    cacheReadTokens: read,
    cacheWriteTokens: written,
    outputTokens: usage.output_tokens ?? 0,
    stopReason: stop_reason ?? "",
  };
}
