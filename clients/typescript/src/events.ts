import { inspect } from "node:util";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { type BlockSchema, type EventSchema, Role } from "./gen/contextd/v1/event_pb.js";
import { checkOptions, wrong } from "./members.js";

/** An event to append. Without an eventId the client sets one; without a time, the daemon sets its own. */
export type EventInit = MessageInitShape<typeof EventSchema>;

/** A part of a message. */
export type BlockInit = MessageInitShape<typeof BlockSchema>;

/** The properties of a message besides its content. */
export interface MessageOptions {
  /** The id by which the daemon recognises an append that is sent again, and appends it once. */
  eventId?: string;
  /** Events that are parts of one API message have the same. */
  groupId?: string;
  /** The model that wrote it, and made its signatures. */
  model?: string;
  /** Every context has it verbatim. */
  pinned?: boolean;
}

const encoder = new TextEncoder();

/** A text, or blocks. */
export type Content = string | readonly BlockInit[];

/** A text. Half of a surrogate pair, which UTF-8 cannot express, becomes U+FFFD. */
export function text(value: string): BlockInit {
  return { kind: { case: "text", value: { text: value } } };
}

/**
 * A call of a tool. Arguments that are the text that the model wrote are kept byte for byte; an
 * object is written by JSON.stringify.
 */
export function toolCall(callId: string, name: string, args: string | Uint8Array | object): BlockInit {
  const argumentsJson = args instanceof Uint8Array ? args : textOrJson("args", args);
  return { kind: { case: "toolCall", value: { callId: splitCallId(callId)[0], name, argumentsJson } } };
}

/**
 * A call's id, and Google's signature of the call. Proxies such as LiteLLM append the signature to the id so that it comes
 * back through clients that know no other member for it. An id is at most 512 characters, and the signature is longer.
 */
export function splitCallId(callId: string): [id: string, signature: string] {
  const mark = "__thought__";
  const at = String(callId).indexOf(mark);
  const signature = at > 0 ? callId.slice(at + mark.length) : "";
  return /^[\w+/=-]+$/.test(signature) ? [callId.slice(0, at), signature] : [callId, ""];
}

/** The reverse of splitCallId. */
export function signedCallId(callId: string, signature: string): string {
  return signature === "" ? callId : `${callId}__thought__${signature}`;
}

/** A block of `anthropic`, `openai` or `google`. Only that provider gets it, unchanged. */
export function providerBlock(provider: string, block: object | string): BlockInit {
  return { kind: { case: "provider", value: { provider, json: textOrJson("block", block) } } };
}

/**
 * A block with those members of a model's block or item that an event has no field for. It comes before the block that
 * it belongs to. That the model made a call itself is not among them.
 */
export function beside(provider: string, item: object, ...names: string[]): BlockInit[] {
  const kept = names.flatMap((name) => {
    const value = (item as Record<string, unknown>)[name];
    const absent = value === undefined || value === null || value === false;
    return absent || (value as { type?: unknown }).type === "direct" ? [] : [[name, value]];
  });
  return kept.length > 0 ? [providerBlock(provider, Object.fromEntries(kept) as object)] : [];
}

/** A call that a model made, after the members of its item. A signature that a proxy appended to its id is one of these, unless the item has others. */
export function called(members: BlockInit[], callId: unknown, name: unknown, args: unknown): BlockInit[] {
  const [, signature] = splitCallId(asText(callId));
  const own = signature && members.length === 0 ? [providerBlock("openai", { provider_specific_fields: { thought_signature: signature } })] : members;
  return [...own, toolCall(asText(callId), asText(name), written(args))];
}

/** Arguments as the model wrote them. Some APIs have them as a text, others as they are, and servers do not always do as the API that they follow. */
function written(args: unknown): string {
  return typeof args === "string" ? args : args === undefined || args === null ? "" : JSON.stringify(args);
}

/** A member that is a text, in which half of a surrogate pair is U+FFFD; empty if it is not one. */
export function asText(member: unknown): string {
  return typeof member === "string" ? member.toWellFormed() : "";
}

/** A member that is a number of tokens; 0 if it is not one. */
export function asCount(member: unknown): number {
  return Number.isSafeInteger(member) && (member as number) >= 0 ? (member as number) : 0;
}

/** The bytes of a text in base64, which may have line ends; undefined if it is no base64 or empty. */
export function bytesOf(encoded: string): Uint8Array<ArrayBuffer> | undefined {
  const text = encoded.replace(/[\r\n]/g, "");
  const whole = text.length % 4 === 0 && /^[A-Za-z0-9+/]+={0,2}$/.test(text);
  return whole ? Uint8Array.from(Buffer.from(text, "base64")) : undefined;
}

/** The elements of a member that is a list; none if it is not one. */
export function elements<T>(member: readonly T[] | null | undefined): readonly T[] {
  return Array.isArray(member) ? (member as readonly T[]) : [];
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
    [{ kind: { case: "toolResult", value: { callId: splitCallId(callId)[0], toolName, isError, content: blocks(content) } } }],
    rest,
  );
}

/** Content that contexts have for some turns, after everything that can be cached. */
export function reminder(
  body: string,
  options: { ttlTurns?: number; dedupeKey?: string; eventId?: string } = {},
): EventInit {
  const { eventId = "", ...rest } = checkOptions(options);
  return { eventId, kind: { case: "reminder", value: { body, ...rest } } };
}

/** The events of a model's response. A response without content becomes a custom event instead of a message. */
export function answered(givenId: unknown, givenModel: unknown, said: BlockInit[]): EventInit[] {
  const [id, model] = [asText(givenId), asText(givenModel)];
  if (said.length > 0) return [assistant(said, { eventId: id, model })];
  return [{ eventId: id, kind: { case: "custom", value: { type: "empty_response", json: jsonBytes({ id, model }) } } }];
}

/** The blocks of a content: a text or a list of parts. Empty texts are omitted. */
export function contentOf<Part>(content: string | readonly Part[] | null | undefined, block: (part: Part) => BlockInit[]): BlockInit[] {
  if (typeof content === "string") return content === "" ? [] : [text(content)];
  return elements(content).flatMap(block);
}

/** Throws if the value is not a response of an API, which has this member: callers may have no types. */
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
