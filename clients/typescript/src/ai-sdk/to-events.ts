import { createHash } from "node:crypto";
import type {
  LanguageModelV3FilePart,
  LanguageModelV3Message,
  LanguageModelV3ReasoningPart,
  LanguageModelV3ToolCallPart,
  LanguageModelV3ToolResultOutput,
  LanguageModelV3ToolResultPart,
} from "@ai-sdk/provider";
import { assistant, type BlockInit, called, type EventInit, media, message, providerBlock, splitCallId, system, text, user } from "../events.js";
import { Role } from "../gen/contextd/v1/event_pb.js";
import { anyOption, beside, provider } from "./options.js";

/** The event for a message of a prompt. `written` has arguments as the model wrote them, by call. */
export function toEvent(m: LanguageModelV3Message, eventId: string, written: ReadonlyMap<string, string> = new Map()): EventInit {
  switch (m.role) {
    case "system":
      return m.content === "" ? nothing(eventId) : system(m.content, { eventId });
    case "user":
      return orNothing(m.content.flatMap((p) => (p.type === "text" ? said(p) : file(p))), eventId, user);
    case "assistant":
      return orNothing(m.content.flatMap((p) => assistantPart(p, written)), eventId, (b, o) => assistant(b, { ...o, groupId: eventId }));
    case "tool": {
      const blocks = m.content.map((p): BlockInit => {
        if (p.type !== "tool-result") throw new TypeError(`contextd cannot keep a part of type ${p.type}`);
        return result(p);
      });
      return orNothing(blocks, eventId, (b, o) => message(Role.TOOL, b, o));
    }
  }
}

type Make = (blocks: BlockInit[], options: { eventId: string }) => EventInit;

function orNothing(blocks: BlockInit[], eventId: string, make: Make): EventInit {
  return blocks.length > 0 ? make(blocks, { eventId }) : nothing(eventId);
}

/** A placeholder for an empty message, which no model sees. */
function nothing(eventId: string): EventInit {
  return { eventId, kind: { case: "custom", value: { type: "ai-sdk.empty-message" } } };
}

function assistantPart(
  p: Extract<LanguageModelV3Message, { role: "assistant" }>["content"][number],
  written: ReadonlyMap<string, string>,
): BlockInit[] {
  switch (p.type) {
    case "text":
      return said(p);
    case "file":
      return file(p);
    case "reasoning":
      return reasoning(p);
    case "tool-call":
      return call(p, written.get(p.toolCallId));
    case "tool-result":
      return [opaque(p)]; // the result of a tool that the provider ran itself
    default:
      return [opaque(p)]; // of a later version: custom, reasoning-file
  }
}

function said(p: { text: string; providerOptions?: LanguageModelV3FilePart["providerOptions"] }): BlockInit[] {
  return p.text === "" ? [] : [text(p.text), ...beside("text", refOf(p.text), of(p))];
}

function reasoning(p: LanguageModelV3ReasoningPart): BlockInit[] {
  // From the seal the daemon knows that this must be sent unchanged or not at all.
  const options = p.providerOptions;
  const redacted = anyOption(options, "redactedData");
  const value = {
    text: p.text,
    signature: anyOption(options, "signature") ?? anyOption(options, "thoughtSignature") ?? hosted(options) ?? "",
    encryptedContent: anyOption(options, "reasoningEncryptedContent") ?? "",
    ...(redacted ? { redactedData: new TextEncoder().encode(redacted) } : {}),
  };
  if (!value.text && !value.signature && !value.encryptedContent && !redacted) return options ? [opaque(p)] : [];
  return [{ kind: { case: "thinking", value } }, ...beside("reasoning", refOf(p.text), of(p))];
}

/** The seal in the list that OpenRouter's provider keeps. */
function hosted(options: LanguageModelV3ReasoningPart["providerOptions"]): string | undefined {
  const list = options?.["openrouter"]?.["reasoning_details"];
  const sealed = Array.isArray(list) && list.some((d) => typeof d === "object" && d !== null && !Array.isArray(d) && (d["signature"] || d["data"]));
  return sealed ? JSON.stringify({ reasoning_details: list }) : undefined;
}

function call(p: LanguageModelV3ToolCallPart, written: string | undefined): BlockInit[] {
  if (p.providerExecuted) return [opaque(p)];
  const input = typeof p.input === "string" ? p.input : (JSON.stringify(p.input) ?? "{}");
  const args = written !== undefined && isParseOf(written, input) ? written : input;
  return [...called([], p.toolCallId, p.toolName, args), ...beside("tool-call", p.toolCallId, of(p))];
}

/** Whether the SDK made this input from what the model wrote: its value, or an empty object if it is not one. */
function isParseOf(written: string, input: string): boolean {
  try {
    const value: unknown = JSON.parse(written);
    return JSON.stringify(value) === input || ((typeof value !== "object" || value === null) && input === "{}");
  } catch {
    return input === "{}" || input === written;
  }
}

function file(p: LanguageModelV3FilePart): BlockInit[] {
  const block = media(p.mediaType, typeof p.data === "string" ? Buffer.from(p.data, "base64") : p.data);
  return [block, ...beside("file", p.mediaType, { ...of(p), ...(p.filename ? { filename: p.filename } : {}) })];
}

function result(p: LanguageModelV3ToolResultPart): BlockInit {
  const isError = isFailure(p.output);
  return {
    kind: {
      case: "toolResult",
      value: { callId: splitCallId(p.toolCallId)[0], toolName: p.toolName, isError, content: output(p.output) },
    },
  };
}

export function isFailure({ type }: LanguageModelV3ToolResultOutput): boolean {
  return type === "error-text" || type === "error-json" || type === "execution-denied";
}

function output(o: LanguageModelV3ToolResultOutput): BlockInit[] {
  switch (o.type) {
    case "text":
    case "error-text":
      return [text(o.value)];
    case "json":
    case "error-json":
      return [text(JSON.stringify(o.value))];
    case "execution-denied":
      return [text(o.reason ?? "The execution of the tool was denied.")];
    case "content":
      return o.value.map((c): BlockInit => {
        switch (c.type) {
          case "text":
            return text(c.text);
          case "file-data":
          case "image-data":
            return media(c.mediaType, Buffer.from(c.data, "base64"));
          case "file-url":
            return media("mediaType" in c ? String(c.mediaType) : "", new URL(c.url));
          default:
            return providerBlock(provider, { content: c });
        }
      });
  }
}

function opaque(part: object): BlockInit {
  return providerBlock(provider, { part });
}

function of(p: { providerOptions?: LanguageModelV3FilePart["providerOptions"] }) {
  return p.providerOptions ? { options: p.providerOptions } : {};
}

/** A short hash to distinguish texts. */
export function refOf(value: string): string {
  return createHash("sha256").update(value).digest("hex").slice(0, 12);
}
