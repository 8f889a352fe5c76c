import type { LanguageModelV3FilePart, LanguageModelV3Prompt, LanguageModelV3ToolResultOutput } from "@ai-sdk/provider";
import type { LanguageModelMiddleware } from "ai";

type Parts<Prompt extends readonly { content: unknown }[]> = Exclude<Prompt[number]["content"], string> extends readonly (infer P)[] ? P : never;
type Part3 = Parts<LanguageModelV3Prompt>;
type Part4 = Parts<LanguageModelV4Prompt>;

/** The prompt that a middleware of version 7 gets. */
export type LanguageModelV4Prompt = Parameters<NonNullable<LanguageModelMiddleware["transformParams"]>>[0]["params"]["prompt"];
type LanguageModelV4FilePart = Extract<Part4, { type: "file" }>;
type LanguageModelV4ToolResultOutput = Extract<Part4, { type: "tool-result" }>["output"];

/** A prompt of version 7 as one of version 6. They only differ in files. */
export function fromV4(prompt: LanguageModelV4Prompt): LanguageModelV3Prompt {
  return each(prompt, (part: Part4) => {
    if (part.type === "file") return { ...part, data: fromData(part.data) };
    if (part.type === "tool-result") return { ...part, output: fromOutput(part.output) };
    return part;
  }) as LanguageModelV3Prompt;
}

/** The reverse. */
export function toV4(prompt: LanguageModelV3Prompt): LanguageModelV4Prompt {
  return each(prompt, (part: Part3) => {
    if (part.type === "file") return { ...part, data: toData(part.data) };
    if (part.type === "tool-result") return { ...part, output: toOutput(part.output) };
    return part;
  }) as LanguageModelV4Prompt;
}

function each<T>(prompt: readonly { content: string | readonly T[] }[], change: (part: T) => unknown): unknown {
  return prompt.map((m) => (typeof m.content === "string" ? m : { ...m, content: m.content.map(change) }));
}

function fromData(data: LanguageModelV4FilePart["data"]): LanguageModelV3FilePart["data"] {
  if (data.type === "data") return data.data;
  if (data.type === "url") return data.url;
  if (data.type === "text") return new TextEncoder().encode(data.text);
  throw new TypeError("contextd cannot keep a file that only its provider has");
}

function toData(data: LanguageModelV3FilePart["data"]): LanguageModelV4FilePart["data"] {
  return data instanceof URL ? { type: "url", url: data } : { type: "data", data };
}

function fromOutput(output: LanguageModelV4ToolResultOutput): LanguageModelV3ToolResultOutput {
  if (output.type !== "content") return output as LanguageModelV3ToolResultOutput;
  type Item = Extract<LanguageModelV3ToolResultOutput, { type: "content" }>["value"][number];
  const value = output.value.map((item): Item => {
    if (item.type !== "file") return item as Item;
    const data = fromData(item.data);
    if (data instanceof URL) return { type: "file-url", url: data.href, mediaType: item.mediaType } as Item;
    const text = typeof data === "string" ? data : Buffer.from(data).toString("base64");
    return { ...item, type: "file-data", data: text } as Item;
  });
  return { type: "content", value };
}

function toOutput(output: LanguageModelV3ToolResultOutput): LanguageModelV4ToolResultOutput {
  if (output.type !== "content") return output;
  type Item = Extract<LanguageModelV4ToolResultOutput, { type: "content" }>["value"][number];
  const value = output.value.map((item): Item => {
    if (item.type === "file-data" || item.type === "image-data") {
      return { ...item, type: "file", data: { type: "data", data: item.data } };
    }
    if (item.type === "file-url") {
      const mediaType = "mediaType" in item ? String(item.mediaType) : "application/octet-stream";
      return { type: "file", mediaType, data: { type: "url", url: new URL(item.url) } };
    }
    return item as Item;
  });
  return { type: "content", value };
}
