import type { Message, MessageCreateParamsNonStreaming, ToolUseBlock } from "@anthropic-ai/sdk/resources/messages";

export const modelName = "claude-sonnet-4-5";

const files = ["main.ts", "flags.ts", "config.ts", "loop.ts", "apply.ts"];

/**
 * Stands for a provider's SDK: `new Anthropic().messages.create` takes the same request and
 * gives the same answer. This one reads file by file, and then says what is wrong.
 */
export function model(request: MessageCreateParamsNonStreaming, turn: number): Message {
  const file = files[turn];
  const content: Message["content"] = file
    ? [
        { type: "text", text: `I read ${file}.`, citations: null },
        { type: "tool_use", id: `toolu_${turn}`, name: "read_file", input: { path: file }, caller: { type: "direct" } },
      ]
    : [{ type: "text", text: "The loop ends one flag too early.", citations: null }];
  const said = JSON.stringify(request.messages).length;
  return {
    id: `msg_${turn}`,
    type: "message",
    role: "assistant",
    model: request.model,
    content,
    stop_reason: file ? "tool_use" : "end_turn",
    usage: { input_tokens: Math.ceil(said / 4), output_tokens: 12 },
  } as Message;
}

/** The tool that the model calls. */
export function readFile(call: ToolUseBlock): string {
  const { path } = call.input as { path: string };
  const lines = Array.from({ length: 50 }, (_, i) => `${path}:${i + 1}: flags.set(args[${i}], parse(args[${i + 1}]));`);
  return lines.join("\n");
}
