import { inspect } from "node:util";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { type BlockSchema, type EventSchema, Role } from "./gen/contextd/v1/event_pb.js";
import { checkOptions, wrong } from "./members.js";

/** An event to append. Without an eventId the client gives one; without a time, the daemon its own. */
export type EventInit = MessageInitShape<typeof EventSchema>;

/** A part of a message. */
export type BlockInit = MessageInitShape<typeof BlockSchema>;

/** The properties of a message besides its content. */
export interface MessageOptions {
  /** Makes an append that is sent again a duplicate instead of a second event. */
  eventId?: string;
  /** Events of one API message share it. */
  groupId?: string;
  /** The model that wrote it: whose signatures it carries. */
  model?: string;
  /** Every context has it verbatim. */
  pinned?: boolean;
}

const encoder = new TextEncoder();

/** A text, or blocks. */
export type Content = string | readonly BlockInit[];

export function text(value: string): BlockInit {
  return { kind: { case: "text", value: { text: value } } };
}

/**
 * A call of a tool. The arguments are kept byte for byte where they are given as the text
 * that the model wrote; an object is written as JSON.stringify does.
 */
export function toolCall(callId: string, name: string, args: string | Uint8Array | object): BlockInit {
  const argumentsJson = args instanceof Uint8Array ? args : textOrJson("args", args);
  return { kind: { case: "toolCall", value: { callId, name, argumentsJson } } };
}

/** A block of `anthropic`, `openai` or `google`. Only that provider gets it, unchanged. */
export function providerBlock(provider: string, block: object | string): BlockInit {
  return { kind: { case: "provider", value: { provider, json: textOrJson("block", block) } } };
}

/** An image, a sound or a document: its bytes, or its URL. */
export function media(mimeType: string, source: Uint8Array | URL): BlockInit {
  if (!(source instanceof URL || source instanceof Uint8Array)) throw wrong("source", "a Uint8Array or a URL", source);
  const at = source instanceof URL ? { uri: source.href } : { data: source };
  return { kind: { case: "media", value: { mimeType, ...at } } };
}

/** A message of any role. */
export function message(role: Role, content: Content, options: MessageOptions = {}): EventInit {
  const { eventId = "", ...rest } = checkOptions(options);
  return { eventId, kind: { case: "message", value: { role, blocks: blocks(content), ...rest } } };
}

export function system(content: Content, options?: MessageOptions): EventInit {
  return message(Role.SYSTEM, content, options);
}

export function user(content: Content, options?: MessageOptions): EventInit {
  return message(Role.USER, content, options);
}

export function assistant(content: Content, options?: MessageOptions): EventInit {
  return message(Role.ASSISTANT, content, options);
}

/** The result of one tool call. */
export function toolResult(
  callId: string,
  content: Content,
  options: MessageOptions & { isError?: boolean; toolName?: string } = {},
): EventInit {
  const { isError = false, toolName = "", ...rest } = checkOptions(options);
  return message(
    Role.TOOL,
    [{ kind: { case: "toolResult", value: { callId, toolName, isError, content: blocks(content) } } }],
    rest,
  );
}

/** Content that is rendered for some turns after everything that can be cached. */
export function reminder(
  body: string,
  options: { ttlTurns?: number; dedupeKey?: string; eventId?: string } = {},
): EventInit {
  const { eventId = "", ...rest } = checkOptions(options);
  return { eventId, kind: { case: "reminder", value: { body, ...rest } } };
}

/** The events of a model's response. A response without content becomes a custom event instead of a message. */
export function answered(id: string, model: string, said: BlockInit[]): EventInit[] {
  if (said.length > 0) return [assistant(said, { eventId: id, groupId: id, model })];
  return [{ eventId: id, kind: { case: "custom", value: { type: "empty_response", json: jsonBytes({ id, model }) } } }];
}

/** Throws if a caller without types passed something else than a response of an API, which has this member. */
export function checkResponse(api: string, response: object, ...members: string[]): void {
  const has = (name: string) => typeof response === "object" && response !== null && name in response;
  if (!members.some(has)) throw new TypeError(`the response is none of ${api}: ${inspect(response, { depth: 1 })}`);
}

function blocks(content: Content): BlockInit[] {
  if (typeof content !== "string" && !Array.isArray(content)) throw wrong("content", "a text or a list of blocks", content);
  return typeof content === "string" ? [text(content)] : [...content];
}

function textOrJson(name: string, value: string | object): Uint8Array<ArrayBuffer> {
  if (typeof value === "string") return encoder.encode(value);
  if (typeof value !== "object" || value === null) throw wrong(name, "a text or an object", value);
  return jsonBytes(value);
}

function jsonBytes(value: object): Uint8Array<ArrayBuffer> {
  return encoder.encode(JSON.stringify(value));
}
