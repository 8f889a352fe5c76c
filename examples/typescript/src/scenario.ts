import { readFileSync } from "node:fs";
import { fromJson, type JsonValue } from "@bufbuild/protobuf";
import type { ContextClient } from "./connection.js";
import { detailsOf } from "./errors.js";
import { AssembleContextRequestSchema } from "./gen/contextd/v1/assembly_pb.js";
import { EventSchema } from "./gen/contextd/v1/event_pb.js";
import { type Format } from "./gen/contextd/v1/format_pb.js";
import { AppendEventsRequestSchema } from "./gen/contextd/v1/log_pb.js";
import { bodyHash, hashOf, HeldContext, sizeOf } from "./held.js";

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
}

/** Runs the steps of a file, which examples/README.md describes, and reports each. */
export async function runScenario(client: ContextClient, file: string, report: (line: object) => void): Promise<void> {
  const scenario = JSON.parse(readFileSync(file, "utf8")) as { session: string; steps: Step[] };
  const player = new Player(client, `${scenario.session}-typescript`);
  for (const [i, step] of scenario.steps.entries()) {
    try {
      report({ step: i, ...(await player.play(step)) });
    } catch (cause) {
      throw new Error(`step ${i} failed`, { cause });
    }
  }
}

class Player {
  readonly #held = new Map<Format, HeldContext>();
  #newest: HeldContext | undefined;

  constructor(
    readonly client: ContextClient,
    readonly sessionId: string,
  ) {}

  async play(step: Step): Promise<object> {
    if (step.append) return await this.#append(step.append);
    if (step.assemble) return await this.#assemble(step.assemble);
    if (step.resolve_first_pointer) return await this.#resolve();
    if (step.error) return await this.#fail(step.error);
    throw new Error("nothing to do");
  }

  async #append(events: JsonValue[]) {
    const request = { sessionId: this.sessionId, events: events.map((e) => fromJson(EventSchema, e)) };
    const { receipts } = await this.client.appendEvents(request);
    const duplicates = receipts.filter((r) => r.duplicate).length;
    return { appended: receipts.length - duplicates, duplicates };
  }

  async #assemble(json: JsonValue) {
    const request = fromJson(AssembleContextRequestSchema, json);
    const held = this.#held.get(request.format) ?? new HeldContext();
    this.#held.set(request.format, held);
    const sent = await held.assemble(this.client, { ...request, sessionId: this.sessionId });
    this.#newest = held;
    return {
      context_hash: hashOf(held.messages),
      prefix_hash: held.header!.prefixHash,
      messages: held.messages.length,
      sent,
      bytes: sizeOf(held.messages),
    };
  }

  async #resolve() {
    const first = this.#newest?.header?.projection?.redactionPointers[0];
    if (!first) throw new Error("the newest assembly has no pointer");
    const { block } = await this.client.resolvePointer({ sessionId: this.sessionId, pointer: first.pointer });
    if (block?.kind.case !== "toolResult") throw new Error(`${first.pointer} gives back no tool result`);
    const hash = bodyHash(block.kind.value);
    if (hash !== first.contentHash) throw new Error(`${first.pointer} gives back ${hash}, not ${first.contentHash}`);
    return { resolved_sha256: hash };
  }

  async #fail({ append, assemble, code, field }: Failure) {
    const err: unknown = await this.#attempt(append, assemble).then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    if (!err) throw new Error(`succeeded; ${code} was to come`);
    const got = detailsOf(err);
    if (got.code !== code || got.field !== field) {
      throw new Error(`failed with ${got.code} in "${got.field}", not ${code} in "${field}"`, { cause: err });
    }
    return { code: got.code, field: got.field };
  }

  async #attempt(append: JsonValue | undefined, assemble: JsonValue | undefined): Promise<unknown> {
    const sessionId = this.sessionId;
    if (append) return await this.client.appendEvents({ ...fromJson(AppendEventsRequestSchema, append), sessionId });
    const request = fromJson(AssembleContextRequestSchema, assemble!);
    return await new HeldContext().assemble(this.client, { ...request, sessionId });
  }
}
