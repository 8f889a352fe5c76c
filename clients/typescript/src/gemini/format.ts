import type { Content, Tool } from "@google/genai";
import type { Context } from "../context.js";
import type { MessageFormat } from "../format.js";
import { Format } from "../gen/contextd/v1/format_pb.js";

/** The parameters of models.generateContent that come from a context. Merge config with your own. */
export interface GeminiParams {
  contents: Content[];
  config: { systemInstruction?: Content };
}

/** A context in the types of @google/genai. */
export type GeminiContext = Context<Content, Content, GeminiParams>;

/** Google's Gemini API. */
export const gemini: MessageFormat<Content, Content, GeminiParams, Tool> = {
  wire: Format.GEMINI,
  list: "contents",
  systemMember: "systemInstruction",
  params: ({ messages, system }) => ({
    contents: messages,
    config: system ? { systemInstruction: system } : {},
  }),
};
