import { asText, type BlockInit, bytesOf, contentOf, elements, media, providerBlock } from "../events.js";

/** The blocks of a content. Parts that only OpenAI has, and texts with annotations, are kept unchanged. */
export function said(content: unknown): BlockInit[] {
  return contentOf(content as string | Part[] | null | undefined, (part) => {
    const { parsed: _, ...own } = part; // the SDK's, not the API's
    const found = images.has(own.type) ? image(own) : undefined;
    if (found) return [found];
    if (!texts.has(own.type) || elements(own.annotations).length) return [providerBlock("openai", own)];
    return contentOf(asText(own.text), () => []);
  });
}

/** An image by its bytes or its URL; undefined where there is none, or where the part says more. */
function image(part: Part): BlockInit | undefined {
  const of = typeof part.image_url === "object" ? part.image_url : undefined;
  const uri = asText(part.image_url) || asText(of?.url);
  if (!["", "auto"].includes(asText(part.detail) || asText(of?.detail)) || uri === "") return undefined;
  if (!uri.startsWith("data:")) return { kind: { case: "media", value: { uri } } };
  const [mimeType, encoded = ""] = uri.slice("data:".length).split(/;base64,(.*)/s) as [string, string?];
  const data = bytesOf(encoded);
  return data && media(mimeType, data);
}

/** What a call of a free tool has as its arguments. */
export function freeInput(input: string | null | undefined): { input: string } {
  return { input: input ?? "" };
}

interface Part {
  type?: string;
  text?: string | null;
  annotations?: readonly unknown[] | null;
  image_url?: string | { url?: string | null; detail?: string | null } | null;
  detail?: string | null;
  parsed?: unknown;
}

const images = new Set<string | undefined>(["image_url", "input_image"]);
const texts = new Set<string | undefined>(["text", "input_text", "output_text"]);
