import { randomUUID } from "node:crypto";
import type { ToolUseBlock } from "@anthropic-ai/sdk/resources/messages";
import { BudgetExceededError, type Client, type EventInit, HeadMismatchError, type Session, system, toolResult, user } from "contextd-client";
import { anthropic, type AnthropicContext, events, usage } from "contextd-client/anthropic";
import { gemini } from "contextd-client/gemini";
import { openaiChat } from "contextd-client/openai";
import { model, modelName, readFile } from "./model.js";

/** Asks a model that reads files, until it answers. */
export async function runAgent(client: Client): Promise<void> {
  const session = client.session(`agent-typescript-${randomUUID()}`);
  const agent = new Agent(session);
  await agent.append([system("You find faults in programs."), user("Why is the last flag not obeyed?")]);
  for (let turn = 0; ; turn++) {
    const context = await agent.assemble();
    const reply = model({ model: modelName, max_tokens: 1024, ...context.requestParams() }, turn);
    // What the user says meanwhile goes into the log from elsewhere.
    if (turn === 2) await session.append(user("It worked last week."));
    await agent.append(events(reply));
    await session.recordModelCall(context, usage(reply));
    const calls = reply.content.filter((b): b is ToolUseBlock => b.type === "tool_use");
    if (calls.length === 0) {
      console.log("answer:", reply.content.map((b) => (b.type === "text" ? b.text : "")).join(""));
      break;
    }
    await agent.append(calls.map((call) => toolResult(call.id, readFile(call))));
  }
  await agent.recall();
  await agent.elsewhere();
}

class Agent {
  readonly #session: Session;
  #head = 0n;
  #maxTokens = 16; // too small at first, to show what the daemon says then
  #pointer: string | undefined;

  constructor(session: Session) {
    this.#session = session;
  }

  /** Appends after what is known of the log, and reads first what others appended meanwhile. */
  async append(events: EventInit[]): Promise<void> {
    for (;;) {
      try {
        this.#head = (await this.#session.append(events, { expectedHead: this.#head })).lastSeq;
        return;
      } catch (err) {
        if (!(err instanceof HeadMismatchError) || err.headSeq <= this.#head) throw err;
        for await (const { seq, kind } of this.#session.events({ fromSeq: this.#head + 1n, toSeq: err.headSeq })) {
          this.#head = seq;
          console.log(`meanwhile, event ${seq}: a ${kind.case}`);
        }
      }
    }
  }

  /** Brings the context up to date. Where it cannot fit, says what cannot be dropped and takes more. */
  async assemble(): Promise<AnthropicContext> {
    for (;;) {
      try {
        const context = await this.#session.assemble(anthropic, { budget: { maxTokens: this.#maxTokens } });
        const { haveBroken: broken, projection, budget } = context.header;
        this.#pointer = projection?.redactionPointers[0]?.pointer ?? this.#pointer;
        if (broken) console.log(`rewritten from message ${broken.index} on by ${broken.reducer}: ${broken.reason}`);
        console.log(`${context.lines.length} messages, ${context.sent} of them new, ${budget?.projectedTokens} tokens`);
        return context;
      } catch (err) {
        if (!(err instanceof BudgetExceededError) || this.#maxTokens >= 2400) throw err;
        for (const p of err.parts) console.log(`${this.#maxTokens} tokens are too few: ${p.what} takes ${p.tokens}`);
        this.#maxTokens = 2400;
      }
    }
  }

  /** Gets back a body that gave way to a pointer. */
  async recall(): Promise<void> {
    if (!this.#pointer) throw new Error("no body gave way to a pointer");
    const body = await this.#session.recall(this.#pointer);
    console.log(`${this.#pointer} is still there: ${body.length} characters`);
  }

  /** The same session for models of other providers. */
  async elsewhere(): Promise<void> {
    const budget = { maxTokens: this.#maxTokens };
    const { messages } = (await this.#session.assemble(openaiChat, { budget })).requestParams();
    console.log(`for OpenAI: ${messages.length} messages`);
    const { contents } = (await this.#session.assemble(gemini, { budget })).requestParams();
    console.log(`for Gemini: ${contents.length} contents`);
  }
}
