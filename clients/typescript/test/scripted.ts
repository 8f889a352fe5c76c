import assert from "node:assert/strict";
import { MockLanguageModelV3, convertArrayToReadableStream as stream6 } from "ai-6/test";
import { convertArrayToReadableStream, MockLanguageModelV4 } from "ai/test";

type Given = NonNullable<ConstructorParameters<typeof MockLanguageModelV4>[0]>;
type Chunk = Awaited<ReturnType<MockLanguageModelV4["doStream"]>>["stream"] extends ReadableStream<infer P> ? P : never;

const usage = {
  inputTokens: { total: 900, noCache: 900, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 5, text: 5, reasoning: 0 },
};

/** What a model of the script does. */
export interface Script {
  /** So many times it calls a tool, two at once in every third turn, and then it answers. */
  rounds: number;
  /** "read" where absent. */
  tool?: string;
  /** What it writes as input; a path where absent. */
  input?: string;
  /** It says nothing beside its calls. */
  silent?: boolean;
}

/** A model of version 7 of the AI SDK that follows a script. */
export const scripted = (script: Script) => new MockLanguageModelV4(follow(script, convertArrayToReadableStream));

/** The same of version 6, whose calls and chunks are no others. */
export const scripted6 = (script: Script) => new MockLanguageModelV3(follow(script, stream6) as object);

function follow({ rounds, tool = "read", input, silent = false }: Script, stream: typeof convertArrayToReadableStream): Given {
  let n = 0;
  const next = () => {
    const i = n++;
    const calls = (i % 3 === 2 ? ["a", "b"] : ["a"]).map((c) => ({
      type: "tool-call" as const,
      toolCallId: `call-${i}${c}-${Math.random()}`,
      toolName: tool,
      input: input ?? JSON.stringify({ path: `file${i}${c}.go` }),
    }));
    const unified = i < rounds ? ("tool-calls" as const) : ("stop" as const);
    return { text: silent && i < rounds ? "" : `Step ${i}.`, calls: i < rounds ? calls : [], finishReason: { unified, raw: unified } };
  };
  return {
    modelId: "claude-sonnet-4-5",
    doGenerate: async () => {
      const { text, calls, finishReason } = next();
      return { content: [...(text ? [{ type: "text" as const, text }] : []), ...calls], finishReason, usage, warnings: [] };
    },
    doStream: async () => {
      const { text, calls, finishReason } = next();
      const chunks: Chunk[] = [
        { type: "stream-start", warnings: [] },
        ...(text ? said(text) : []),
        ...calls,
        { type: "finish", finishReason, usage },
      ];
      return { stream: stream(chunks) };
    },
  };
}

const said = (text: string): Chunk[] => [{ type: "text-start", id: "t" }, { type: "text-delta", id: "t", delta: text }, { type: "text-end", id: "t" }];

/** What a tool that reads files answers: too much for a small budget. */
export const read = (path: string) => Array.from({ length: 40 }, (_, i) => `${path}:${i} func step${i * 7}() error { return nil }`).join("\n");

/** Fails where a prompt of either version does not answer each call, in order, with its result. */
export function paired(prompt: readonly { content: string | readonly { type: string }[] }[]): void {
  const ids = (type: string) =>
    prompt.flatMap((m) => (typeof m.content === "string" ? [] : m.content)).flatMap((p) => (p.type === type && "toolCallId" in p ? p.toolCallId : []));
  assert.deepEqual(ids("tool-result"), ids("tool-call"));
}
