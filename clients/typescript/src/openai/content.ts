import { type BlockInit, contentOf, providerBlock, text } from "../events.js";

/** The blocks of a content. Parts that only OpenAI has, and texts with annotations, are kept unchanged. */
export function said(content: unknown): BlockInit[] {
  return contentOf(content as string | Part[] | null | undefined, (part) => {
    const { parsed: _, ...own } = part; // the SDK's, not the API's
    if (!texts.has(own.type) || own.annotations?.length) return [providerBlock("openai", own)];
    return own.text ? [text(own.text)] : [];
  });
}

/** What a call of a free tool has as its arguments. */
export function freeInput(input: string | null | undefined): { input: string } {
  return { input: input ?? "" };
}

interface Part {
  type?: string;
  text?: string | null;
  annotations?: readonly unknown[] | null;
  parsed?: unknown;
}

const texts = new Set<string | undefined>(["text", "input_text", "output_text"]);
