import type { SharedV3ProviderOptions } from "@ai-sdk/provider";
import type { BlockInit } from "../events.js";
import { providerBlock } from "../events.js";

/** The provider name of blocks for content that the log has no kind for. */
export const provider = "ai-sdk";

/**
 * The data of a part for which its block in the log has no field, as a separate block right after
 * it. `of` and `ref` identify the part, since a context may have dropped it.
 */
export interface Beside {
  of: "text" | "reasoning" | "tool-call" | "file";
  ref: string;
  options?: SharedV3ProviderOptions;
  filename?: string;
}

/** The block after a part; none if there is no such data. */
export function beside(of: Beside["of"], ref: string, extra: Omit<Beside, "of" | "ref">): BlockInit[] {
  const options = withoutMarks(extra.options);
  const filename = extra.filename;
  if (!options && filename === undefined) return [];
  const value: Beside = { of, ref, ...(options ? { options } : {}), ...(filename === undefined ? {} : { filename }) };
  return [providerBlock(provider, { beside: value })];
}

/**
 * Options without cache marks, which are for one request only, and without the time at which Mastra
 * made a part, which differs between processes.
 */
export function withoutMarks(options: SharedV3ProviderOptions | undefined): SharedV3ProviderOptions | undefined {
  const { mastra: _, ...all } = options ?? {};
  const kept = Object.entries(all).flatMap(([name, { cacheControl: _, cachePoint: __, ...rest }]) =>
    Object.keys(rest).length > 0 ? [[name, rest] as const] : [],
  );
  return kept.length > 0 ? Object.fromEntries(kept) : undefined;
}

/** The option of this name, of whichever provider has one. */
export function anyOption(options: SharedV3ProviderOptions | undefined, name: string): string | undefined {
  for (const of of Object.values(options ?? {})) {
    const value = of[name];
    if (typeof value === "string" && value !== "") return value;
  }
  return undefined;
}
