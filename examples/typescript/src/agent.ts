import { randomUUID } from "node:crypto";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Message } from "@anthropic-ai/sdk/resources/messages";
import type { ContextClient } from "./connection.js";
import { detailsOf, patiently } from "./errors.js";
import { type BlockSchema, type EventSchema, Role } from "./gen/contextd/v1/event_pb.js";
import { Format } from "./gen/contextd/v1/format_pb.js";
import type { RedactionPointer } from "./gen/contextd/v1/projection_pb.js";
import { bodyHash, HeldContext } from "./held.js";
import { model, modelName, readFile } from "./model.js";
import { anthropicRequest, geminiRequest, openaiRequest } from "./request.js";

type EventInit = MessageInitShape<typeof EventSchema>;
type BlockInit = MessageInitShape<typeof BlockSchema>;

/** Asks a model that reads files, until it answers. */
export async function runAgent(client: ContextClient): Promise<void> {
  const agent = new Agent(client, `agent-typescript-${randomUUID()}`);
  await agent.append([
    said("system", Role.SYSTEM, [text("You find faults in programs.")]),
    said("question", Role.USER, [text("Why is the last flag not obeyed?")]),
  ]);
  for (let turn = 0; ; turn++) {
    await agent.assemble();
    const reply = model(anthropicRequest(agent.context, modelName), turn);
    // What the user says meanwhile goes into the log from elsewhere.
    if (turn === 2) await agent.interject("It worked last week.");
    await agent.append([replied(reply)]);
    await agent.record(reply);
    const calls = reply.content.filter((b) => b.type === "tool_use");
    if (calls.length === 0) {
      console.log("answer:", reply.content.map((b) => (b.type === "text" ? b.text : "")).join(""));
      break;
    }
    await agent.append(calls.map((call) => result(call.id, readFile(call))));
  }
  await agent.resolve();
  await agent.elsewhere();
}

class Agent {
  readonly context = new HeldContext();
  readonly #client: ContextClient;
  readonly #sessionId: string;
  #head = 0n;
  #budget = 16; // too small at first, to show what the daemon says then
  #pointer: RedactionPointer | undefined;

  constructor(client: ContextClient, sessionId: string) {
    this.#client = client;
    this.#sessionId = sessionId;
  }

  /** Appends after what is known of the log, and reads first what others appended meanwhile. */
  async append(events: EventInit[]): Promise<void> {
    for (;;) {
      try {
        const request = { sessionId: this.#sessionId, events, expectedHead: this.#head };
        this.#head = (await patiently(() => this.#client.appendEvents(request))).lastSeq;
        return;
      } catch (err) {
        const { reason, metadata } = detailsOf(err);
        const head = BigInt(metadata["head_seq"] ?? 0);
        if (reason !== "HEAD_MISMATCH" || head <= this.#head) throw err;
        await this.#catchUp(head);
      }
    }
  }

  async #catchUp(toSeq: bigint): Promise<void> {
    const range = { sessionId: this.#sessionId, fromSeq: this.#head + 1n, toSeq };
    for await (const { events } of this.#client.readEvents(range)) {
      for (const { seq, kind } of events) {
        this.#head = seq;
        console.log(`meanwhile, event ${seq}: a ${kind.case}`);
      }
    }
  }

  async interject(words: string): Promise<void> {
    const events = [said("", Role.USER, [text(words)])];
    await this.#client.appendEvents({ sessionId: this.#sessionId, events });
  }

  /** Brings the context up to date. Where it cannot fit, says what cannot be dropped and takes more. */
  async assemble(): Promise<void> {
    for (;;) {
      try {
        const request = { sessionId: this.#sessionId, format: Format.ANTHROPIC, budget: { maxTokens: BigInt(this.#budget) } };
        const sent = await patiently(() => this.context.assemble(this.#client, request));
        const { haveBroken: broken, projection, budget } = this.context.header!;
        this.#pointer = projection?.redactionPointers[0] ?? this.#pointer;
        if (broken) console.log(`rewritten from message ${broken.index} on by ${broken.reducer}: ${broken.reason}`);
        console.log(`${this.context.messages.length} messages, ${sent} of them new, ${budget?.projectedTokens} tokens`);
        return;
      } catch (err) {
        const { reason, parts } = detailsOf(err);
        if (reason !== "BUDGET_EXCEEDED" || this.#budget >= 2400) throw err;
        for (const p of parts) console.log(`${this.#budget} tokens are too few: ${p.what} takes ${p.tokens}`);
        this.#budget = 2400;
      }
    }
  }

  /** Tells what the provider counted. */
  async record({ model, usage, stop_reason }: Message): Promise<void> {
    await this.#client.recordModelCall({
      sessionId: this.#sessionId,
      projectionId: this.context.header!.projectionId,
      model,
      inputTokens: BigInt(usage.input_tokens),
      outputTokens: BigInt(usage.output_tokens),
      stopReason: stop_reason ?? "",
    });
  }

  /** Gets back a body that gave way to a pointer. */
  async resolve(): Promise<void> {
    if (!this.#pointer) throw new Error("no body gave way to a pointer");
    const { pointer, contentHash, contentChars } = this.#pointer;
    const { block } = await this.#client.resolvePointer({ sessionId: this.#sessionId, pointer });
    const hash = block?.kind.case === "toolResult" ? bodyHash(block.kind.value) : "nothing";
    if (hash !== contentHash) throw new Error(`${pointer} gives back ${hash}, not ${contentHash}`);
    console.log(`${pointer} is still there: ${contentChars} characters`);
  }

  /** The same session for models of other providers. */
  async elsewhere(): Promise<void> {
    const request = { sessionId: this.#sessionId, budget: { maxTokens: BigInt(this.#budget) } };
    const chat = new HeldContext();
    await chat.assemble(this.#client, { ...request, format: Format.OPENAI_CHAT });
    console.log(`for OpenAI: ${openaiRequest(chat, "gpt-5").messages.length} messages`);
    const contents = new HeldContext();
    await contents.assemble(this.#client, { ...request, format: Format.GEMINI });
    const { contents: list } = geminiRequest(contents, "gemini-2.5-pro");
    console.log(`for Gemini: ${Array.isArray(list) ? list.length : 1} contents`);
  }
}

/** What the model said, as an event; its id makes an append that is repeated a duplicate. */
function replied(m: Message): EventInit {
  const blocks = m.content.map((b): BlockInit => {
    if (b.type === "text") return text(b.text);
    if (b.type !== "tool_use") throw new Error(`a block of type ${b.type}`);
    const argumentsJson = new TextEncoder().encode(JSON.stringify(b.input));
    return { kind: { case: "toolCall", value: { callId: b.id, name: b.name, argumentsJson } } };
  });
  return { eventId: m.id, kind: { case: "message", value: { role: Role.ASSISTANT, blocks, model: m.model } } };
}

function result(callId: string, output: string): EventInit {
  const block: BlockInit = { kind: { case: "toolResult", value: { callId, content: [text(output)] } } };
  return said(`result-${callId}`, Role.TOOL, [block]);
}

function said(eventId: string, role: Role, blocks: BlockInit[]): EventInit {
  return { eventId, kind: { case: "message", value: { role, blocks } } };
}

function text(value: string): BlockInit {
  return { kind: { case: "text", value: { text: value } } };
}
