import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { fromJson, type JsonValue } from "@bufbuild/protobuf";
import {
  type AssembleOptions,
  type Client,
  type Context,
  ContextdError,
  type EventInit,
  hashOf,
  LogLostError,
  type MessageFormat,
  own,
  type Session,
} from "contextd-client";
import { anthropic } from "contextd-client/anthropic";
import { gemini } from "contextd-client/gemini";
import { openaiChat, openaiResponses } from "contextd-client/openai";
import { AppendEventsRequestSchema, AssembleContextRequestSchema, EventSchema } from "contextd-client/proto";

interface Failure {
  append?: JsonValue;
  assemble?: JsonValue;
  code: string;
  field: string;
}

/** One step; exactly one member is there. */
interface Step {
  append?: JsonValue[];
  assemble?: JsonValue;
  resolve_first_pointer?: true;
  error?: Failure;
  daemon?: string;
  lost?: JsonValue[];
}

type AnyContext = Context<unknown, unknown, unknown>;

const formats = [anthropic, openaiChat, openaiResponses, gemini, own] as readonly MessageFormat<unknown, unknown, unknown>[];

/** Runs the steps of a file, which examples/README.md describes, and prints a line for each. */
export async function runScenario(client: Client, file: string): Promise<void> {
  const scenario = JSON.parse(readFileSync(file, "utf8")) as { session: string; steps: Step[] };
  const player = new Player(client.session(`${scenario.session}-typescript`));
  try {
    for (const [step, what] of scenario.steps.entries()) {
      try {
        if (what.daemon) {
          report({ step, daemon: what.daemon });
          await player.wait();
        } else {
          report({ step, ...(await player.play(what)) });
        }
      } catch (cause) {
        throw new Error(`step ${step} failed`, { cause });
      }
    }
  } finally {
    player.close();
  }
}

function report(line: object): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

class Player {
  readonly #session: Session;
  readonly #input = createInterface({ input: process.stdin });
  readonly #answers = this.#input[Symbol.asyncIterator]();
  readonly #appended: EventInit[] = []; // all of them, for a log that is lost
  #newest: AnyContext | undefined;

  constructor(session: Session) {
    this.#session = session;
  }

  close(): void {
    this.#input.close();
  }

  /** Lets the runner do something to the daemon. */
  async wait(): Promise<void> {
    if ((await this.#answers.next()).done) throw new Error("nobody answers");
  }

  async play(step: Step): Promise<object> {
    if (step.append) return await this.#append(step.append);
    if (step.assemble) return await this.#assemble(step.assemble);
    if (step.resolve_first_pointer) return await this.#resolve();
    if (step.error) return await this.#fail(step.error);
    if (step.lost) return await this.#lose(step.lost);
    throw new Error("nothing to do");
  }

  async #append(json: JsonValue[]) {
    const events = json.map((e) => fromJson(EventSchema, e));
    const line = await this.#send(events);
    this.#appended.push(...events);
    return line;
  }

  async #send(events: EventInit[]) {
    const { receipts } = await this.#session.append(events);
    const duplicates = receipts.filter((r) => r.duplicate).length;
    return { appended: receipts.length - duplicates, duplicates };
  }

  async #assembled(json: JsonValue): Promise<AnyContext> {
    const { format, budget, policy, injections } = fromJson(AssembleContextRequestSchema, json);
    const options: AssembleOptions = { injections, ...(policy ? { policy } : {}) };
    if (budget) {
      const { model, tokenizer, safetyMargin, maxTokens, outputReserve } = budget;
      options.budget = { model, tokenizer, maxTokens: Number(maxTokens), outputReserve: Number(outputReserve) };
      if (safetyMargin !== undefined) options.budget.safetyMargin = safetyMargin;
    }
    return await this.#session.assemble(formats.find((f) => f.wire === format)!, options);
  }

  async #assemble(json: JsonValue) {
    const context = (this.#newest = await this.#assembled(json));
    return {
      context_hash: hashOf(context.lines),
      prefix_hash: context.header.prefixHash,
      messages: context.lines.length,
      sent: context.sent,
      bytes: context.lines.reduce((n, line) => n + line.length + 1, 0),
    };
  }

  async #resolve() {
    const first = this.#newest?.header.projection?.redactionPointers[0];
    if (!first) throw new Error("the newest assembly has no pointer");
    const body = await this.#session.recall(first.pointer);
    const hash = "sha256:" + createHash("sha256").update(body).digest("hex");
    if (hash !== first.contentHash) throw new Error(`${first.pointer} gives back ${hash}, not ${first.contentHash}`);
    return { resolved_sha256: hash };
  }

  async #fail({ append, assemble, code, field }: Failure) {
    const got = await thrown(append ? this.#appendOnce(append) : this.#assembled(assemble!));
    if (!(got instanceof ContextdError) || got.code !== code || got.field !== field) {
      throw new Error(`not ${code} in "${field}"`, { cause: got });
    }
    return { code: got.code, field: got.field };
  }

  async #appendOnce(json: JsonValue): Promise<unknown> {
    const { events, expectedHead } = fromJson(AppendEventsRequestSchema, json);
    return await this.#session.append(events, expectedHead === undefined ? {} : { expectedHead });
  }

  /** Appends to a log that was lost, and then all of the conversation again. */
  async #lose(json: JsonValue[]) {
    const events = json.map((e) => fromJson(EventSchema, e));
    const lost = await thrown(this.#send(events));
    if (!(lost instanceof LogLostError)) throw new Error("the loss of the log was not noticed", { cause: lost });
    this.#session.forget();
    this.#appended.push(...events);
    return { reason: lost.reason, field: lost.field, ...(await this.#send(this.#appended)) };
  }
}

/** What a call fails with; undefined where it succeeds. */
async function thrown(call: Promise<unknown>): Promise<unknown> {
  return await call.then(
    () => undefined,
    (err: unknown) => err,
  );
}
