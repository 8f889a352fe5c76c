import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { test } from "node:test";
import type { Tool as AnthropicTool } from "@anthropic-ai/sdk/resources/messages";
import { fromJson, type JsonValue } from "@bufbuild/protobuf";
import type { Tool as GeminiTool } from "@google/genai";
import type { ChatCompletionTool } from "openai/resources/chat/completions";
import type { Tool as ResponsesTool } from "openai/resources/responses/responses";
import { anthropic } from "../src/anthropic/index.js";
import { gemini } from "../src/gemini/index.js";
import { EventSchema } from "../src/gen/contextd/v1/event_pb.js";
import { PolicySchema } from "../src/gen/contextd/v1/policy_pb.js";
import { own, type Session, user } from "../src/index.js";
import { openaiChat, openaiResponses } from "../src/openai/index.js";
import { daemon, noDaemon } from "./daemon.js";

const d = daemon();

interface Vectors {
  policy: JsonValue;
  events: JsonValue[];
  tools: Record<string, unknown>;
  calls: { name: string; arguments: string; text: string; is_error: boolean }[];
}

const file = resolve(import.meta.dirname, "../../../../client/testdata/recall.json");
const vectors = JSON.parse(readFileSync(file, "utf8")) as Vectors;
let made: Promise<Session> | undefined;

/** The session of the vectors. */
function recalled(): Promise<Session> {
  made ??= (async () => {
    const session = await d.client.createSession("recall", { policy: fromJson(PolicySchema, vectors.policy) });
    await session.append(vectors.events.map((event) => fromJson(EventSchema, event)));
    return session;
  })();
  return made;
}

test("the tools answer as in all languages", { skip: noDaemon }, async () => {
  const tools = await (await recalled()).recallTools(own);
  assert.deepEqual(tools.names, ["look_up", "search_log", "explain"]);
  assert.deepEqual(tools.schemas, []);
  assert.ok(tools.has("look_up") && !tools.has("bash"));
  for (const call of vectors.calls) {
    const { text, isError } = await tools.call(call.name, call.arguments);
    assert.deepEqual({ text, isError }, { text: call.text, isError: call.is_error });
  }
  const [first] = vectors.calls;
  const { text } = await tools.call(first!.name, JSON.parse(first!.arguments) as unknown);
  assert.equal(text, first!.text);
});

test("the schemas are the SDKs' types", { skip: noDaemon }, async () => {
  const session = await recalled();
  const claude: AnthropicTool[] = (await session.recallTools(anthropic)).schemas;
  const chat: ChatCompletionTool[] = (await session.recallTools(openaiChat)).schemas;
  const responses: ResponsesTool[] = (await session.recallTools(openaiResponses)).schemas;
  const google: GeminiTool[] = (await session.recallTools(gemini)).schemas;
  assert.deepEqual({ anthropic: claude, openai_chat: chat, openai_responses: responses, gemini: google }, vectors.tools);
});

test("the tool may have a name of its own", { skip: noDaemon }, async () => {
  const other = d.client.session("recall/named");
  await other.append(user("Hello"));
  const tools = await other.recallTools(anthropic, { recallTool: "show" });
  assert.equal(tools.schemas[0]?.name, "show");
  assert.ok((await tools.call("show", { pointer: "ctx:1.0" })).text.endsWith("]\nHello"));
  assert.ok((await tools.call("show", undefined)).isError);
});
