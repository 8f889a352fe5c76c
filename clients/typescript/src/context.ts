import type { CacheBreakpoint, ContextHeader } from "./gen/contextd/v1/assembly_pb.js";
import type { Received } from "./delta.js";
import type { MessageFormat } from "./format.js";
import { member } from "./json-text.js";
import { checkNone, checkObject, checkOptions, wrong } from "./members.js";

/** The context of one model call, for a provider's SDK. */
export class Context<Message, System, Params> {
  readonly #format: MessageFormat<Message, System, Params>;
  readonly #received: Received;

  constructor(format: MessageFormat<Message, System, Params>, received: Received) {
    this.#format = format;
    this.#received = received;
  }

  /** The decisions, their reasons, and the size. */
  get header(): ContextHeader {
    return this.#received.header;
  }

  /** The hash of all lines. It was compared with what was received. */
  get hash(): string {
    return this.header.contextHash;
  }

  /** How many messages the daemon sent; the client had the others. */
  get sent(): number {
    return this.#received.sent;
  }

  /** The bytes of every message, including the system prompt, in order. Do not change them. */
  get lines(): readonly Uint8Array[] {
    return this.#received.lines;
  }

  /**
   * The messages, without the system prompt if the format has it outside of them. They are
   * parsed again at every call, so the caller may change them.
   */
  messages(): Message[] {
    return this.#messageTexts(false).map((text) => JSON.parse(text) as Message);
  }

  /** The system prompt, if there is one and the format has it outside of the messages. */
  get system(): System | undefined {
    return this.#system(false);
  }

  /**
   * The context as parameters of the SDK, to spread into yours: messages, system prompt, and
   * cache marks or keys for the provider. `cache: false` omits these marks and keys.
   */
  requestParams(options: { cache?: boolean } = {}): Params {
    const cache = withCache(options);
    return this.#format.params({
      messages: this.#messageTexts(cache).map((text) => JSON.parse(text) as Message),
      system: this.#system(cache),
      promptCacheKey: cache ? this.header.promptCacheKey : "",
    });
  }

  /**
   * The body of a request over HTTP: the members of `rest` and the context, whose messages
   * keep their bytes. JSON.parse and JSON.stringify would change some numbers and objects in the
   * arguments of calls; see inexact.
   */
  requestBody(rest: Record<string, unknown> = {}, options: { cache?: boolean } = {}): Uint8Array<ArrayBuffer> {
    const cache = withCache(options);
    const members = Object.entries(checkObject("rest", rest))
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`);
    const system = this.#systemText(cache);
    if (system) members.push(system.slice(1, -1));
    members.push(`${JSON.stringify(this.#format.list)}:[${this.#messageTexts(cache).join(",")}]`);
    if (cache && this.header.promptCacheKey) {
      members.push(`"prompt_cache_key":${JSON.stringify(this.header.promptCacheKey)}`);
    }
    return new TextEncoder().encode(`{${members.join(",")}}`);
  }

  /** The indexes of lines that JavaScript would change by parsing and writing them. */
  inexact(): number[] {
    return this.lines.flatMap((line, i) => {
      const text = decode(line);
      return JSON.stringify(JSON.parse(text)) === text ? [] : [i];
    });
  }

  #messageTexts(marked: boolean): string[] {
    const from = this.#received.system ? 1 : 0;
    return this.lines.slice(from).map((line, i) => this.#text(line, from + i, marked));
  }

  #systemText(marked: boolean): string | undefined {
    const first = this.lines[0];
    return this.#received.system && first ? this.#text(first, 0, marked) : undefined;
  }

  #system(marked: boolean): System | undefined {
    const text = this.#systemText(marked);
    const span = text === undefined ? undefined : member(text, this.#format.systemMember);
    return span && (JSON.parse(text!.slice(span.start, span.end)) as System);
  }

  /** A message as text; if marked, with the provider's cache marks. */
  #text(line: Uint8Array, index: number, marked: boolean): string {
    const text = decode(line);
    if (!marked || !this.#format.mark) return text;
    const at: CacheBreakpoint | undefined = this.header.cacheBreakpoints.find((b) => b.messageIndex === index);
    return at ? this.#format.mark(text, at.contentIndex) : text;
  }
}

function withCache(options: { cache?: boolean }): boolean {
  const { cache = true, ...others } = checkOptions(options);
  checkNone("a context", others);
  if (typeof cache !== "boolean") throw wrong("cache", "true or false", cache);
  return cache;
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function decode(line: Uint8Array): string {
  return utf8.decode(line);
}
