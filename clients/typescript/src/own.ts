import { Format } from "./gen/contextd/v1/format_pb.js";
import type { Context } from "./context.js";
import type { MessageFormat } from "./format.js";

/** A block of contextd's own format. It has one member, which says what it is. Arguments that are not JSON are in arguments_text. */
export type OwnBlock =
  | { text: { text: string } }
  | { thinking: { text?: string; signature?: string; redacted_data?: string; encrypted_content?: string } }
  | { tool_call: { call_id: string; name: string; arguments_json?: unknown; arguments_text?: string } }
  | { tool_result: { call_id: string; tool_name?: string; content: OwnBlock[]; is_error?: true } }
  | { media: { mime_type?: string; data?: string; uri?: string } }
  | { provider: { provider: string; json: unknown } };

/** A message of contextd's own format. */
export interface OwnMessage {
  role: "system" | "user" | "assistant" | "tool";
  blocks: OwnBlock[];
}

export type OwnContext = Context<OwnMessage, undefined, { messages: OwnMessage[] }>;

/** contextd's own messages, for providers that have no format here. */
export const own: MessageFormat<OwnMessage, undefined, { messages: OwnMessage[] }> = {
  wire: Format.UNSPECIFIED,
  list: "messages",
  systemMember: "",
  params: ({ messages }) => ({ messages }),
};
