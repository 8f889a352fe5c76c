// Responses are read as the Go client reads them: the fixtures are the same.
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { test } from "node:test";
import { create, toJsonString } from "@bufbuild/protobuf";
import * as claude from "../src/anthropic/index.js";
import * as google from "../src/gemini/index.js";
import { signedCallId, splitCallId } from "../src/events.js";
import { type EventInit, type ModelCall, toolCall, toolResult } from "../src/index.js";
import { chatEvents, chatUsage, responsesEvents, responsesUsage } from "../src/openai/index.js";
import { BlockSchema, EventSchema } from "../src/proto.js";

const fixtures = resolve(import.meta.dirname, "../../../../client/read/testdata");

/** What reads the responses of an API, by how the names of its fixtures begin. */
const readers: Record<string, [(response: never) => EventInit[], (response: never) => ModelCall]> = {
  anthropic: [claude.events, claude.usage],
  empty: [claude.events, claude.usage],
  gemini: [google.events, google.usage],
  openai_chat: [chatEvents, chatUsage],
  openai_responses: [responsesEvents, responsesUsage],
};

const skip = existsSync(fixtures) ? false : "the repository's client/read is not there";
const files = skip ? ["*.response.json"] : readdirSync(fixtures).filter((name) => name.endsWith(".response.json"));

/** The SDKs parse JSON, so the JSON in bytes is compared by its values. */
function plain(line: string): unknown {
  return JSON.parse(line, (name, value: string) => {
    if (name !== "json" && name !== "argumentsJson") return value;
    const written = Buffer.from(value, "base64").toString();
    try {
      return JSON.parse(written) as unknown;
    } catch {
      return written;
    }
  });
}

for (const file of files) {
  test(`${file} is read as by the Go client`, { skip }, () => {
    const [events, usage] = readers[Object.keys(readers).find((api) => file.startsWith(api))!]!;
    const response = JSON.parse(readFileSync(join(fixtures, file), "utf8")) as never;
    const [event, counted] = readFileSync(join(fixtures, file.replace(/json$/, "golden")), "utf8").trim().split("\n").map(plain);
    const read = events(response).map((e) => plain(toJsonString(EventSchema, create(EventSchema, e))));
    assert.deepEqual(read, [event]);
    const reported = Object.entries(usage(response)).filter(([, value]) => value !== 0 && value !== "");
    assert.deepEqual(Object.fromEntries(reported.map(([name, value]) => [name, String(value)])), counted);
  });
}

test("a call and its result have the same id, without a signature", { skip }, () => {
  for (const line of readFileSync(join(fixtures, "call_ids.jsonl"), "utf8").trim().split("\n")) {
    const { given, id, signature } = JSON.parse(line) as { given: string; id: string; signature: string };
    assert.deepEqual(splitCallId(given), [id, signature]);
    assert.equal(signedCallId(id, signature), given);
    const call = create(BlockSchema, toolCall(given, "read", "{}"));
    assert.equal(call.kind.case === "toolCall" && call.kind.value.callId, id);
    const { kind } = create(EventSchema, toolResult(given, "ok"));
    const [block] = kind.case === "message" ? kind.value.blocks : [];
    assert.equal(block?.kind.case === "toolResult" && block.kind.value.callId, id);
  }
});
