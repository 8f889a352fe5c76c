import type { Format } from "./gen/contextd/v1/format_pb.js";

/**
 * A format of contexts, with the types of its parts: a message, the system prompt if the request
 * has it outside the messages (else undefined), the request's parameters, and a tool.
 */
export interface MessageFormat<Message, System, Params, Tool = unknown> {
  /** The API's value for the format. */
  readonly wire: Format;
  /** The member of a request's body that lists the messages. */
  readonly list: string;
  /** The member for the system prompt; empty if the prompt is a message. */
  readonly systemMember: string;
  /** Puts the provider's cache mark on an item of a message: on the last if none is named. */
  readonly mark?: (text: string, item: number | undefined) => string;
  /** The type of a tool in a request's list of tools; there is no value. */
  readonly tool?: Tool;
  /** Puts the parts together. promptCacheKey is empty if there is none. */
  params(parts: { messages: Message[]; system: System | undefined; promptCacheKey: string }): Params;
}

/** Throws a TypeError if the value is not a format: callers may have no types. */
export function checkFormat(format: { readonly list?: string } | undefined): void {
  if (!format?.list) throw new TypeError(`format must be one of this package's, such as anthropic, not ${typeof format === "string" ? JSON.stringify(format) : String(format)}`);
}
