import { createServer, type Server } from "node:http";
import { text } from "node:stream/consumers";

interface Message {
  role: string;
  content: string | { type: string }[];
}

/** Anthropic's API, as far as the pages' programs call it: the model reads a file once, and then answers. */
export class Anthropic implements AsyncDisposable {
  readonly requests: { model: string; system?: unknown; messages: Message[] }[] = [];

  private constructor(private readonly server: Server) {}

  /** Listens, where the AI SDK's provider looks for it. */
  static async start(): Promise<Anthropic> {
    const server = createServer();
    const made = new Anthropic(server);
    server.on("request", async (req, res) => {
      const request = JSON.parse(await text(req));
      made.requests.push(request);
      const { content } = (request.messages as Message[]).at(-1)!;
      const answered = typeof content !== "string" && content.some((b) => b.type === "tool_result");
      res.setHeader("content-type", "application/json").end(JSON.stringify({
        id: `msg_${made.requests.length}`,
        type: "message",
        role: "assistant",
        model: request.model,
        content: answered
          ? [{ type: "text", text: "It lacks a file." }]
          : [{ type: "tool_use", id: `toolu_${made.requests.length}`, name: "read", input: { path: "Makefile" } }],
        stop_reason: answered ? "end_turn" : "tool_use",
        stop_sequence: null,
        usage: { input_tokens: 900, output_tokens: 5 },
      }));
    });
    await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
    const address = server.address();
    if (address === null || typeof address === "string") throw new Error("no port");
    process.env["ANTHROPIC_BASE_URL"] = `http://127.0.0.1:${address.port}/v1`;
    process.env["ANTHROPIC_API_KEY"] = "none";
    return made;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((closed) => this.server.close(closed));
  }
}
