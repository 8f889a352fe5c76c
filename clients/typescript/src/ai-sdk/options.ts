import type { SharedV3ProviderOptions } from "@ai-sdk/provider";
import type { BlockInit } from "../events.js";
import { providerBlock } from "../events.js";

/** Whose blocks are what the log has no word for. */
export const provider = "ai-sdk";

/**
 * What a part has besides what the log's blocks carry, in a separate block right after the
 * part's. `of` and `ref` say which part, as it may have been dropped by then.
 */
export interface Beside {
  of: "text" | "reasoning" | "tool-call" | "file";
  ref: string;
  options?: SharedV3ProviderOptions;
  filename?: string;
}

/** The block after a part; none where there is nothing to say. */
export function beside(of: Beside["of"], ref: string, extra: Omit<Beside, "of" | "ref">): BlockInit[] {
  const options = withoutMarks(extra.options);
  const filename = extra.filename;
  if (!options && filename === undefined) return [];
  const value: Beside = { of, ref, ...(options ? { options } : {}), ...(filename === undefined ? {} : { filename }) };
  return [providerBlock(provider, { beside: value })];
}

/**
 * Options without cache marks, which belong to one request, and history outlives it; nor the time at
 * which Mastra made a part, which is another one in each process.
 */
export function withoutMarks(options: SharedV3ProviderOptions | undefined): SharedV3ProviderOptions | undefined {
  const { mastra: _, ...all } = options ?? {};
  const kept = Object.entries(all).flatMap(([name, { cacheControl: _, cachePoint: __, ...rest }]) =>
    Object.keys(rest).length > 0 ? [[name, rest] as const] : [],
  );
  return kept.length > 0 ? Object.fromEntries(kept) : undefined;
}

/** A provider's option that some provider calls by this name. */
export function anyOption(options: SharedV3ProviderOptions | undefined, name: string): string | undefined {
  for (const of of Object.values(options ?? {})) {
    const value = of[name];
    if (typeof value === "string" && value !== "") return value;
  }
  return undefined;
}
