import type { Format } from "./gen/contextd/v1/format_pb.js";

/**
 * A format of contexts, with the types of its parts: a message, the system prompt if it is
 * outside of the messages (else undefined), the request's parameters, and a tool.
 */
export interface MessageFormat<Message, System, Params, Tool = unknown> {
  /** The API's value for the format. */
  readonly wire: Format;
  /** The member of a request's body that lists the messages. */
  readonly list: string;
  /** The member for the system prompt; empty if that is a message. */
  readonly systemMember: string;
  /** Puts the provider's cache mark on a message's item, the last where none is named. */
  readonly mark?: (text: string, item: number | undefined) => string;
  /** A tool in a request's list of tools, for its type alone. */
  readonly tool?: Tool;
  /** Puts the parts together. promptCacheKey is empty where there is none. */
  params(parts: { messages: Message[]; system: System | undefined; promptCacheKey: string }): Params;
}

/** Throws a TypeError if a caller without types passed something else than a format. */
export function checkFormat(format: { readonly list?: string } | undefined): void {
  if (!format?.list) throw new TypeError(`format must be one of this package's, such as anthropic, not ${typeof format === "string" ? JSON.stringify(format) : String(format)}`);
}
