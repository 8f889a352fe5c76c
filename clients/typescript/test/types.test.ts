// What the compiler holds: a context is what its own SDK takes, and no other's.
import { test } from "node:test";
import type { MessageCreateParamsNonStreaming } from "@anthropic-ai/sdk/resources/messages";
import type { Content, GenerateContentParameters } from "@google/genai";
import type { LanguageModelMiddleware as Middleware7 } from "ai";
import type { LanguageModelMiddleware } from "ai-6";
import type { ChatCompletionCreateParamsNonStreaming } from "openai/resources/chat/completions";
import type { ResponseCreateParamsNonStreaming } from "openai/resources/responses/responses";
import { contextdMiddleware } from "../src/ai-sdk/index.js";
import { contextdMiddleware as contextdMiddleware7 } from "../src/ai-sdk-7/index.js";
import { anthropic } from "../src/anthropic/index.js";
import { gemini } from "../src/gemini/index.js";
import { own, type Session } from "../src/index.js";
import { openaiChat, openaiResponses } from "../src/openai/index.js";

test("contexts have the types of the SDKs", () => {
  // Never called: only its types matter.
  void (async (session: Session) => {
    const model = "m";
    const a = await session.assemble(anthropic);
    const c = await session.assemble(openaiChat);
    const r = await session.assemble(openaiResponses);
    const g = await session.assemble(gemini);
    const o = await session.assemble(own);

    const toAnthropic: MessageCreateParamsNonStreaming = { model, max_tokens: 1, ...a.requestParams() };
    const byHand: MessageCreateParamsNonStreaming = { model, max_tokens: 1, messages: a.messages(), ...(a.system ? { system: a.system } : {}) };
    const toChat: ChatCompletionCreateParamsNonStreaming = { model, ...c.requestParams() };
    const toResponses: ResponseCreateParamsNonStreaming = { model, ...r.requestParams() };
    const { contents, config } = g.requestParams();
    const toGemini: GenerateContentParameters = { model, contents, config: { ...config, temperature: 0 } };
    const instruction: Content | undefined = g.system;
    const role: "system" | "user" | "assistant" | "tool" | undefined = o.messages()[0]?.role;
    const middleware: LanguageModelMiddleware = contextdMiddleware({ session });
    const middleware7: Middleware7 = contextdMiddleware7({ session });

    // @ts-expect-error Anthropic's messages are not those of a chat.
    const wrong: ChatCompletionCreateParamsNonStreaming = { model, ...a.requestParams() };
    // @ts-expect-error A chat has no system prompt outside its messages.
    const none: string = c.system;
    // @ts-expect-error There is no such option.
    await session.assemble(anthropic, { budgets: {} });
    return [toAnthropic, byHand, toChat, toResponses, toGemini, instruction, role, middleware, middleware7, wrong, none];
  });
});
