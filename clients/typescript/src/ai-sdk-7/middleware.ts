import type { LanguageModelMiddleware } from "ai";
import { contextdMiddleware as ofVersion6, type MiddlewareOptions } from "../ai-sdk/middleware.js";
import { fromV4, toV4 } from "./prompt.js";

/**
 * Appends the new messages of each prompt to the session's log, and replaces the prompt by
 * the assembled context. Prompts must have the whole conversation, as those of
 * generateText, streamText and agents do. It records the provider's token counts.
 */
export function contextdMiddleware(options: MiddlewareOptions): LanguageModelMiddleware {
  const { transformParams, wrapGenerate, wrapStream } = ofVersion6(options);
  // Both versions have the same calls, usage and chunks, as far as the middleware reads them.
  return {
    specificationVersion: "v4",
    transformParams: async ({ params, ...rest }) => {
      const given = { ...params, prompt: fromV4(params.prompt) };
      const made = await transformParams!({ ...rest, params: given } as never);
      return Object.assign(made as never, { prompt: toV4(made.prompt) });
    },
    wrapGenerate: wrapGenerate as never,
    wrapStream: wrapStream as never,
  };
}
