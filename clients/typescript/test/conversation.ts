import { assistant, type BlockInit, type EventInit, system, text, toolCall, toolResult, user } from "../src/index.js";

/** What opens the conversation. */
export const opening: EventInit[] = [system("You repair builds."), user("Why does \"make\" fail? 😀 ")];

/** One turn: an assistant message with one or two calls, and their results. */
export function turn(n: number): EventInit[] {
  const ids = n % 3 === 0 ? [`toolu_${n}a`, `toolu_${n}b`] : [`toolu_${n}a`];
  const calls = ids.map((id): BlockInit => toolCall(id, "read_file", `{"path": "pkg/file${n}.go", "from": 1.0}`));
  const body = Array.from({ length: 40 }, (_, i) => `${n}.${i}: func step${n * 7 + i}() error { return nil }`).join("\n");
  return [
    assistant([text(`Step ${n}.`), ...calls], { model: "claude-sonnet-4-5" }),
    ...ids.map((id) => toolResult(id, body, { isError: n % 5 === 4 })),
  ];
}

/** Small enough that forty turns do not fit. */
export const tight = { maxTokens: 6000, outputReserve: 500, safetyMargin: 0, tokenizer: "o200k_base" };

/** Cuts are the daemon's own, not those of a summary that may be ready or not. */
export const policy = { summarization: { enabled: false } };
