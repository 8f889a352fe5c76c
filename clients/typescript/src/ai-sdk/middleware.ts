import type { LanguageModelV3, LanguageModelV3CallOptions, LanguageModelV3FinishReason, LanguageModelV3Middleware, LanguageModelV3Prompt, LanguageModelV3Usage } from "@ai-sdk/provider";
import { checkFunctions, checkNone, checkOptions, wrong } from "../members.js";
import { own, type OwnContext } from "../own.js";
import type { AssembleOptions, Session } from "../session.js";
import { type Diverged, History } from "./history.js";
import { messagesOf, toPrompt } from "./to-prompt.js";

/** How a middleware assembles. */
export interface MiddlewareOptions extends Pick<AssembleOptions, "budget" | "policy" | "timeoutMs"> {
  /** The session of the conversation; one middleware is for one conversation. */
  session: Session;
  /** Returns content for a single model call; called before each. */
  injections?: () => AssembleOptions["injections"] | Promise<AssembleOptions["injections"]>;
  /** Sets Anthropic's cache marks: after the system prompt, and after the prefix that the next prompt will share. */
  anthropicCache?: boolean;
  /**
   * What to do if a prompt does not continue the session's log: throw a PromptDivergedError, which is the default,
   * or continue in a fork, `<id>/v2` and so on, which shares the log up to the first difference.
   */
  diverged?: Diverged;
  /** Called if the token counts could not be recorded. The model call does not fail because of that. */
  onRecordError?: (error: unknown) => void;
}

/**
 * Appends the new messages of each prompt to the session's log, and replaces the prompt by
 * the assembled context. Prompts must have the whole conversation, as those of
 * generateText, streamText and agents do. It records the provider's token counts.
 */
export function contextdMiddleware(options: MiddlewareOptions): LanguageModelV3Middleware {
  const { session, injections: inject, anthropicCache, onRecordError, budget, policy, timeoutMs, diverged = "throw", ...others } = checkOptions(options);
  checkNone("contextdMiddleware", others);
  if (typeof session?.assemble !== "function") throw wrong("session", "what client.session(id) returned", session);
  checkFunctions({ injections: inject, onRecordError });
  if (diverged !== "throw" && diverged !== "fork") throw wrong("diverged", '"throw" or "fork"', diverged);
  const history = new History(session, diverged);
  const contexts = new WeakMap<LanguageModelV3CallOptions, { context: OwnContext; of: Session }>();
  let turn: Promise<unknown> = Promise.resolve();

  async function transform(params: LanguageModelV3CallOptions): Promise<LanguageModelV3CallOptions> {
    const signal = params.abortSignal;
    const injections = await inject?.();
    const assemble = async (of: Session) => ({ of, context: await of.assemble(own, {
      ...(budget ? { budget, tools: schemas(params.tools) } : {}),
      ...(policy ? { policy } : {}),
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
      ...(injections ? { injections } : {}),
      ...(signal ? { signal } : {}),
    }) });
    const assembled = await history.follow(params.prompt, signal, assemble).catch((error) => {
      signal?.throwIfAborted(); // the SDK knows an abort by the signal's reason
      throw error;
    });
    const { context } = assembled;
    const { prompt, lastLine } = toPrompt(messagesOf(context));
    if (anthropicCache) mark(prompt, lastLine, context.header.prefixMessages);
    const made = { ...params, prompt };
    contexts.set(made, assembled);
    return made;
  }

  async function record(
    params: LanguageModelV3CallOptions,
    model: LanguageModelV3,
    usage: LanguageModelV3Usage,
    reason: LanguageModelV3FinishReason,
  ): Promise<void> {
    const { context, of } = contexts.get(params) ?? {};
    if (!context || !of) return;
    const { inputTokens: input, outputTokens: output } = usage;
    try {
      await of.recordModelCall(context, {
        model: model.modelId,
        inputTokens: input.total ?? 0,
        cacheReadTokens: input.cacheRead ?? 0,
        cacheWriteTokens: input.cacheWrite ?? 0,
        outputTokens: output.total ?? 0,
        stopReason: reason.raw ?? reason.unified,
      });
    } catch (error) {
      onRecordError?.(error);
    }
  }

  return {
    specificationVersion: "v3",
    transformParams: ({ params }) => {
      const mine = turn.then(() => transform(params));
      turn = mine.catch(() => {});
      return mine;
    },
    wrapGenerate: async ({ doGenerate, params, model }) => {
      const result = await doGenerate();
      for (const part of result.content) if (part.type === "tool-call") history.wrote(part.toolCallId, part.input);
      await record(params, model, result.usage, result.finishReason);
      return result;
    },
    wrapStream: async ({ doStream, params, model }) => {
      const { stream, ...rest } = await doStream();
      type Chunk = typeof stream extends ReadableStream<infer T> ? T : never;
      const watched = stream.pipeThrough(
        new TransformStream<Chunk, Chunk>({
          async transform(chunk, controller) {
            if (chunk.type === "tool-call") history.wrote(chunk.toolCallId, chunk.input);
            if (chunk.type === "finish") await record(params, model, chunk.usage, chunk.finishReason);
            controller.enqueue(chunk);
          },
        }),
      );
      return { ...rest, stream: watched };
    },
  };
}

/** A call's tools in the form of its request; the provider's own tools unchanged. */
function schemas(tools: LanguageModelV3CallOptions["tools"]): unknown[] {
  return (tools ?? []).map((t) => {
    if (t.type !== "function") return t;
    return { type: "function", function: { name: t.name, description: t.description ?? "", parameters: t.inputSchema } };
  });
}

/** Marks the last leading system message, and the last message within the stable lines. */
function mark(prompt: LanguageModelV3Prompt, lastLine: readonly number[], stable: number): void {
  const systems = prompt.findIndex((m) => m.role !== "system");
  const end = lastLine.findLastIndex((line) => line < stable);
  for (const i of new Set([systems - 1, end])) {
    const m = prompt[i];
    if (m) m.providerOptions = { ...m.providerOptions, anthropic: { cacheControl: { type: "ephemeral" } } };
  }
}
