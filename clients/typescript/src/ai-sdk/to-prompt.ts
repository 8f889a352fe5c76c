import type {
  LanguageModelV3FilePart,
  LanguageModelV3Message,
  LanguageModelV3Prompt,
  LanguageModelV3ReasoningPart,
  LanguageModelV3TextPart,
  LanguageModelV3ToolCallPart,
  LanguageModelV3ToolResultOutput,
  LanguageModelV3ToolResultPart,
} from "@ai-sdk/provider";
import { signedCallId } from "../events.js";
import { items, member } from "../json-text.js";
import type { OwnBlock, OwnContext, OwnMessage } from "../own.js";
import { type Beside, provider } from "./options.js";
import { refOf } from "./to-events.js";

type Part =
  | LanguageModelV3TextPart
  | LanguageModelV3FilePart
  | LanguageModelV3ReasoningPart
  | LanguageModelV3ToolCallPart
  | LanguageModelV3ToolResultPart;

/**
 * A context's messages. Arguments with a number that JavaScript cannot represent (1e400), which it
 * would write as null, are in arguments_text.
 */
export function messagesOf(context: OwnContext): OwnMessage[] {
  const messages = context.messages();
  messages.forEach((m, line) => {
    m.blocks.forEach((b, i) => {
      if (!("tool_call" in b) || !infinite(b.tool_call.arguments_json)) return;
      const text = new TextDecoder().decode(context.lines[line]);
      const block = items(text, member(text, "blocks")!.start)[i]!;
      const written = member(text, "arguments_json", member(text, "tool_call", block.start)!.start)!;
      b.tool_call.arguments_text = text.slice(written.start, written.end);
    });
  });
  return messages;
}

function infinite(value: unknown): boolean {
  const all = [value]; // not recursive, since there may be thousands of levels
  for (let v = all.pop(); v !== undefined; v = all.pop()) {
    if (typeof v === "number" && !Number.isFinite(v)) return true;
    if (typeof v === "object" && v !== null) for (const inner of Object.values(v)) all.push(inner);
  }
  return false;
}

/** contextd's own messages as a prompt, and for each of its messages the index of its last line. */
export function toPrompt(messages: readonly OwnMessage[]): { prompt: LanguageModelV3Prompt; lastLine: number[] } {
  const prompt: LanguageModelV3Prompt = [];
  const lastLine: number[] = [];
  const ids = new Map<string, string>();
  messages.forEach((m, line) => {
    const made = toMessage(m, ids);
    const before = prompt.at(-1);
    if (made.role === "tool" && before?.role === "tool") {
      // The results of parallel calls are one message.
      before.content.push(...made.content);
      lastLine[lastLine.length - 1] = line;
    } else if (made.role === "system" || made.content.length > 0) {
      prompt.push(made);
      lastLine.push(line);
    }
  });
  return { prompt, lastLine };
}

/** `ids` are those of the calls so far with their signatures, by which results name them, too. */
function toMessage(m: OwnMessage, ids: Map<string, string>): LanguageModelV3Message {
  switch (m.role) {
    case "system":
      return { role: "system", content: m.blocks.flatMap((b) => ("text" in b ? b.text.text : [])).join("\n") };
    case "tool":
      return { role: "tool", content: m.blocks.flatMap((b) => ("tool_result" in b ? [result(b.tool_result, ids)] : [])) };
    case "user": {
      const parts = toParts(m.blocks, ids).filter((p) => p.type === "text" || p.type === "file");
      return { role: "user", content: parts };
    }
    case "assistant":
      return { role: "assistant", content: toParts(m.blocks, ids) };
  }
}

function toParts(blocks: readonly OwnBlock[], ids: Map<string, string>): Part[] {
  const parts: Part[] = [];
  let missing = false;
  let signature = "";
  for (const b of blocks) {
    if ("text" in b) parts.push({ type: "text", text: b.text.text });
    else if ("thinking" in b) parts.push({ type: "reasoning", text: b.thinking.text ?? "" });
    else if ("media" in b) parts.push(file(b.media));
    else if ("tool_call" in b) {
      const { call_id, name } = b.tool_call;
      const toolCallId = signedCallId(call_id, signature);
      ids.set(call_id, toolCallId);
      signature = "";
      parts.push({ type: "tool-call", toolCallId, toolName: name, input: inputOf(b.tool_call) });
    } else if ("provider" in b && b.provider.provider === "openai") signature = signatureIn(b.provider.json);
    else if ("provider" in b && b.provider.provider === provider) {
      const { part, beside } = b.provider.json as { part?: Part; beside?: Beside };
      if (part) parts.push(part);
      if (beside && !join(parts.at(-1), beside)) missing = true;
    }
  }
  // A stored item must not be referred to by its id without the reasoning before it.
  if (missing) for (const p of parts) for (const of of Object.values(p.providerOptions ?? {})) delete of["itemId"];
  // Anthropic refuses a blank text. Another provider may need one that has an id of its own.
  return parts.filter((p) => p.type !== "text" || p.providerOptions || p.text.trim() !== "");
}

/** Google's signature of the call after this block; empty if it has none. */
function signatureIn(members: unknown): string {
  const given = members as { provider_specific_fields?: { thought_signature?: unknown } | null } | null;
  const signature = given?.provider_specific_fields?.thought_signature;
  return typeof signature === "string" ? signature : "";
}

/** Providers only accept objects. Other values are wrapped, as in the daemon's formats. */
function inputOf(call: Extract<OwnBlock, { tool_call: unknown }>["tool_call"]): unknown {
  if (call.arguments_text !== undefined) return { raw_arguments: call.arguments_text };
  const value = call.arguments_json;
  if (value === undefined) return {};
  return typeof value === "object" && value !== null && !Array.isArray(value) ? value : { raw_arguments: JSON.stringify(value) };
}

/** Restores a part's other options, if they belong to this part. */
function join(p: Part | undefined, { of, ref, options, filename }: Beside): boolean {
  if (p?.type !== of) return false;
  if ((p.type === "text" || p.type === "reasoning") && refOf(p.text) !== ref) return false;
  if (p.type === "tool-call" && p.toolCallId !== ref) return false;
  if (p.type === "file" && filename !== undefined) p.filename = filename;
  if (options) p.providerOptions = options;
  return true;
}

function file(m: { mime_type?: string; data?: string; uri?: string }): LanguageModelV3FilePart {
  return { type: "file", mediaType: m.mime_type ?? "application/octet-stream", data: m.uri ? new URL(m.uri) : (m.data ?? "") };
}

function result(r: Extract<OwnBlock, { tool_result: unknown }>["tool_result"], ids: ReadonlyMap<string, string>): LanguageModelV3ToolResultPart {
  return { type: "tool-result", toolCallId: ids.get(r.call_id) ?? r.call_id, toolName: r.tool_name ?? "", output: output(r.content, r.is_error) };
}

function output(content: readonly OwnBlock[], isError: boolean | undefined): LanguageModelV3ToolResultOutput {
  if (content.every((b) => "text" in b)) {
    const value = content.map((b) => b.text.text).join("\n");
    return isError ? { type: "error-text", value: value.trim() === "" ? "[no output]" : value } : { type: "text", value }; // Anthropic refuses an empty error
  }
  type Item = Extract<LanguageModelV3ToolResultOutput, { type: "content" }>["value"][number];
  const value = content.flatMap((b): Item[] => {
    if ("text" in b) return b.text.text.trim() === "" ? [] : [{ type: "text", text: b.text.text }];
    if ("media" in b) return [item(b.media)];
    if ("provider" in b && b.provider.provider === provider) return [(b.provider.json as { content: Item }).content];
    return [];
  });
  return { type: "content", value };
}

function item(m: { mime_type?: string; data?: string; uri?: string }) {
  const mediaType = m.mime_type ?? "";
  if (m.uri) return { type: "file-url" as const, url: m.uri, ...(mediaType ? { mediaType } : {}) };
  const type = mediaType.startsWith("image/") ? ("image-data" as const) : ("file-data" as const);
  return { type, data: m.data ?? "", mediaType };
}
