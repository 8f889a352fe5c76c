import type { MessageCreateParamsBase, MessageParam, TextBlockParam, Tool } from "@anthropic-ai/sdk/resources/messages";
import type { Context } from "../context.js";
import type { MessageFormat } from "../format.js";
import { Format } from "../gen/contextd/v1/format_pb.js";
import { items, member } from "../json-text.js";

/** The parameters of messages.create that come from a context. */
export type AnthropicParams = Pick<MessageCreateParamsBase, "messages"> & { system?: TextBlockParam[] };

/** A context in Anthropic's types. */
export type AnthropicContext = Context<MessageParam, TextBlockParam[], AnthropicParams>;

/** Anthropic's Messages API. */
export const anthropic: MessageFormat<MessageParam, TextBlockParam[], AnthropicParams, Tool> = {
  wire: Format.ANTHROPIC,
  list: "messages",
  systemMember: "system",
  mark,
  params: ({ messages, system }) => (system ? { system, messages } : { messages }),
};

// The API refuses cache marks on these.
const unmarkable = new Set(["thinking", "redacted_thinking"]);

/** Marks an item, or the nearest one before it that can be marked. */
function mark(text: string, item: number | undefined): string {
  const list = member(text, "content") ?? member(text, "system");
  if (!list) return text;
  const spans = items(text, list.start);
  for (let i = Math.min(item ?? Infinity, spans.length - 1); i >= 0; i--) {
    const { start, end } = spans[i]!;
    const block = JSON.parse(text.slice(start, end)) as { type?: string; cache_control?: unknown };
    if (block.cache_control) return text;
    if (unmarkable.has(block.type ?? "")) continue;
    return `${text.slice(0, end - 1)},"cache_control":{"type":"ephemeral"}${text.slice(end - 1)}`;
  }
  return text;
}
