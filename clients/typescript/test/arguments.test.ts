// What a caller without types passes by mistake is a TypeError that names it, not something else that is done or sent.
import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { anthropic, events as claude, usage as claudeUsage } from "../src/anthropic/index.js";
import { events as gemini, usage as geminiUsage } from "../src/gemini/index.js";
import { assistant, Client, Context, hashOf, media, message, providerBlock, reminder, Session, startSidecar, system, toolCall, toolResult, user } from "../src/index.js";
import { chatEvents, chatUsage, responsesUsage } from "../src/openai/index.js";
import { EventSchema, Role } from "../src/proto.js";
import { daemon, noDaemon } from "./daemon.js";

const d = daemon();
const skip = noDaemon;

const never = undefined as never;
const bytes = new Uint8Array(1);
const header = { header: { projectionId: "p1-0001" } };

/** Each method that takes options, with these. */
const options: Record<string, (given: never) => unknown> = {
  "Client.createSession": (o) => d.client.createSession("s", {}, o),
  "Client.sessions": (o) => d.client.sessions({}, o).next(),
  "Client.projectTranscript": (o) => d.client.projectTranscript([user("a")], anthropic, o),
  "Client.countTokens": (o) => d.client.countTokens({ text: "a" }, o),
  "Client.convertTranscript": (o) => d.client.convertTranscript(bytes, "claude", o),
  "Client.watch": (o) => d.client.watch(o).next(),
  "Client.runHooks": (o) => d.client.runHooks(o),
  "Client.runSummaries": (o) => d.client.runSummaries(typeof o === "object" && o !== null ? { ...(o as object), workerId: "w", write: String } : o),
  "Session.append": (o) => session().append(user("a"), o),
  "Session.assemble": (o) => session().assemble(anthropic, o),
  "Session.resolvePointer": (o) => session().resolvePointer("ctx:1.0", o),
  "Session.recordModelCall": (o) => session().recordModelCall(header, {}, o),
  "Session.get": (o) => session().get(o),
  "Session.events": (o) => session().events({}, o).next(),
  "Session.fork": (o) => session().fork("t", o),
  "Session.createAlike": (o) => session().createAlike("t", o),
  "Session.delete": (o) => session().delete(o),
  "Session.compact": (o) => session().compact(o),
  "Session.undoCompaction": (o) => session().undoCompaction(1n, o),
  "Session.summaries": (o) => session().summaries(o),
  "Session.explain": (o) => session().explain("a", 0, o),
  "Session.calls": (o) => session().calls(o).next(),
  "Session.projections": (o) => session().projections(o).next(),
  "Session.replayProjection": (o) => session().replayProjection("p1-0001", o),
  "Session.renderProjection": (o) => session().renderProjection("", o),
  "Session.recall": (o) => session().recall("ctx:1.0", o),
  "Session.recallTools": (o) => session().recallTools(anthropic, o),
  "Session.importTranscript": (o) => session().importTranscript(bytes, o),
  "Session.exportTranscript": (o) => session().exportTranscript("claude", o),
};

const session = () => d.client.session("s");
const withoutOptions = ["Client.session", "Client.close", "Session.beside", "Session.forget"];
/** These end with a signal alone. */
const endless = ["Client.watch", "Client.runHooks", "Client.runSummaries"];

test("all methods are in the table", () => {
  const methods = [Client, Session].flatMap(({ name, prototype }) =>
    Object.entries(Object.getOwnPropertyDescriptors(prototype)).flatMap(([method, { value }]) => (value && method !== "constructor" ? [`${name}.${method}`] : [])),
  );
  assert.deepEqual(methods.sort(), [...Object.keys(options), ...withoutOptions].sort());
});

for (const [method, call] of Object.entries(options)) {
  test(`${method} takes no wrong options`, { skip }, async () => {
    for (const [given, message] of [
      [null, /must be an object, not null$/],
      [5, /must be an object, not 5$/],
      [{ bugdet: 1 }, /has no (option|member) bugdet$/],
      [{ signal: 5 }, /^signal must be an AbortSignal, not 5$/],
      ...(endless.includes(method) ? [] : [-1, 0, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 31, "5s", null].map((timeoutMs) => [{ timeoutMs }, /^timeoutMs must be milliseconds, /])),
    ] as const) {
      await assert.rejects(async () => call(given as never), { name: "TypeError", message: message as RegExp }, JSON.stringify(given));
    }
  });
}

const wrong: Record<string, [RegExp, (client: Client) => unknown]> = {
  "a session as a number": [/^a session's id must be a string, not 5$/, (c) => c.session(5 as never)],
  "an event as a string": [/^events\[0\] must be an event, .* not "hi"$/, (c) => c.session("s").append("hi" as never)],
  "events as strings": [/^events\[1\] must be an event, .* not "hi"$/, (c) => c.session("s").append([user("a"), "hi" as never])],
  "no format": [/^format must be .* not undefined$/, (c) => c.session("s").assemble(undefined as never)],
  "a format as a string": [/^format must be .* not "anthropic"$/, (c) => c.session("s").assemble("anthropic" as never)],
  "a budget as a number": [/^budget must be an object, not 5$/, (c) => c.session("s").assemble(anthropic, { budget: 5 as never })],
  "tokens as a string": [/^budget\.maxTokens must be an integer of 0 or more, not "4k"$/, (c) => c.createSession("s", { budget: { maxTokens: "4k" as never } })],
  "half a token": [/^budget\.maxTokens must be an integer of 0 or more, not 1\.5$/, (c) => c.session("s").compact({ budget: { maxTokens: 1.5 } })],
  "a budget in the API's names": [/^budget has no member max_tokens$/, (c) => c.session("s").assemble(anthropic, { budget: { max_tokens: 4000 } as never })],
  "a part of a policy in the API's names": [
    /^policy\.projection has no member keep_last$/,
    (c) => c.session("s").assemble(anthropic, { policy: { projection: { policy: "custom", keep_last: 1 } as never } }),
  ],
  "a mistyped option": [/^AssembleContextRequest has no member bugdet$/, (c) => c.session("s").assemble(anthropic, { bugdet: 5 } as never)],
  "a mistyped member of a block": [
    /^events\[1\]\.message\.blocks\[0\]\.toolCall has no member call_id$/,
    (c) => c.session("s").append([user("a"), message(Role.ASSISTANT, [{ kind: { case: "toolCall", value: { call_id: "c" } as never } }])]),
  ],
  "a mistyped id of an event": [/^events\[0\]\.message has no member event_id$/, (c) => c.session("s").append(user("a", { event_id: "q" } as never))],
  "a kind that no event has": [/^events\[0\]\.kind has no case note$/, (c) => c.session("s").append({ kind: { case: "note", value: {} } } as never)],
  "a policy's name alone": [/^policy must be an object, not "frugal"$/, (c) => c.session("s").assemble(anthropic, { policy: "frugal" as never })],
  "a truth value as a text": [/^preview must be true or false, not "no"$/, (c) => c.session("s").assemble(anthropic, { preview: "no" as never })],
  "a text as an object": [/^text must be a string, not \{ text: 'hi' \}$/, (c) => c.session("s").explain({ text: "hi" } as never)],
  "bytes as a text": [
    /^events\[0\]\.message\.blocks\[0\]\.toolCall\.argumentsJson must be a Uint8Array, not "\{\}"$/,
    (c) => c.session("s").append(assistant([{ kind: { case: "toolCall", value: { callId: "c", name: "x", argumentsJson: "{}" as never } } }])),
  ],
  "half of a surrogate pair in a session's id": [/^sessionId must be a string without half of a surrogate pair, not "s\\udc80"$/, (c) => c.session("s\udc80").get()],
  "half of a surrogate pair in an event's id": [/^events\[0\]\.eventId must be a string without half/, (c) => c.session("s").append(user("a", { eventId: "a\ud83d" }))],
  "half of a surrogate pair in an event that was created": [
    /^events\[0\]\.eventId must be a string without half/,
    (c) => c.session("s").append(create(EventSchema, user("a", { eventId: "a\ud83d" }))),
  ],
  "half of a surrogate pair in a call's id": [
    /^events\[0\]\.message\.blocks\[0\]\.toolResult\.callId must be a string without half/,
    (c) => c.session("s").append(toolResult("\udc00", "a")),
  ],
  "half of a surrogate pair in a label's name": [/^a name in labels must be a string without half of a surrogate pair, not "\\ud83d"$/, (c) => c.createSession("s", { labels: { "\ud83d": "a" } })],
  "half of a surrogate pair in a label": [/^labels\["a"\] must be a string without half/, (c) => c.createSession("s", { labels: { a: "\ud83d" } })],
  "one session where many are": [/^sessionIds must be a list, not "s"$/, (c) => c.watch({ sessionIds: "s" as never, signal: AbortSignal.timeout(5000) }).next()],
  "a list of numbers where texts are": [/^sessionIds\[1\] must be a string, not 5$/, (c) => c.watch({ sessionIds: ["s", 5 as never], signal: AbortSignal.timeout(5000) }).next()],
  "labels as numbers": [/^labels\["a"\] must be a string, not 5$/, (c) => c.createSession("s", { labels: { a: 5 as never } })],
  "a second event as options": [/^append takes one event, or a list of them/, (c) => c.session("s").append(user("a"), user("b") as never)],
  "a text to count": [/^what must be an object, not "hello"$/, (c) => c.countTokens("hello" as never)],
  "an address without a port": [/^the address "localhost" must be host:port or unix:\/\/\/path$/, () => new Client("localhost")],
  "a URL as an address": [/^the address "http:\/\/127\.0\.0\.1:7171" must be host:port or unix:\/\/\/path$/, () => new Client("http://127.0.0.1:7171")],
  "less than no tokens": [/^budget\.maxTokens must be an integer of 0 or more, not -1$/, (c) => c.createSession("s", { budget: { maxTokens: -1 } })],
  "turns as a text": [
    /^policy\.window\.maxTurns must be an integer of 0 or more, not "many"$/,
    (c) => c.session("s").assemble(anthropic, { policy: { window: { maxTurns: "many" as never } } }),
  ],
  "a share as a text": [
    /^policy\.summarization\.startAt must be a number, not "half"$/,
    (c) => c.session("s").assemble(anthropic, { policy: { summarization: { startAt: "half" as never } } }),
  ],
  "tools as a text": [/^tools must be a list of schemas, not "x"$/, (c) => c.session("s").assemble(anthropic, { tools: "x" as never })],
  "a failure as the third argument": [/^options must be an object, not true$/, () => toolResult("c", "x", true as never)],
  "where to fork as an argument": [/^options must be an object, not 9$/, (c) => c.session("s").fork("t", 9 as never)],
  "an option that no client has": [/^a client has no option patience$/, () => new Client("127.0.0.1:7171", { patience: 0 } as never)],
  "usage before the context": [/^context must be what assemble returned, not \{ inputTokens: 5 \}$/, (c) => c.session("s").recordModelCall({ inputTokens: 5 } as never, {})],
  "a result as an object": [/^content must be a text or a list of blocks, not \{ lines: 3 \}$/, () => toolResult("c", { lines: 3 } as never)],
  "content as a number": [/^content must be a text or a list of blocks, not 5$/, () => user(5 as never)],
  "an event's id as null": [/^events\[0\]\.eventId must be a string, not null$/, (c) => c.session("s").append(user("a", { eventId: null as never }))],
  "a role as a text": [/^events\[0\]\.message\.role must be a value of Role, not "user"$/, (c) => c.session("s").append(message("user" as never, "a"))],
  "no events to project": [/^events must be a list of events, not undefined$/, (c) => c.projectTranscript(never, anthropic)],
  "a budget that is null": [/^budget must be an object, not null$/, (c) => c.session("s").assemble(anthropic, { budget: null as never })],
  "tools to count as an object": [/^tools must be a list of schemas, not \{\}$/, (c) => c.countTokens({ tools: {} as never })],
  "half a token of a call": [/^inputTokens must be an integer of 0 or more, not 1\.5$/, (c) => c.session("s").recordModelCall(header, { inputTokens: 1.5 })],
  "no counts": [/^call must be an object, not undefined$/, (c) => c.session("s").recordModelCall(header, never)],
  "a range as a number": [/^range must be an object, not 5$/, (c) => c.session("s").events(5 as never).next()],
  "settings as a number": [/^settings must be an object, not 5$/, (c) => c.createSession("s", 5 as never)],
  "a harness as a number": [/^harness must be a string, not 5$/, (c) => c.convertTranscript(bytes, "claude", { harness: 5 as never })],
  "a folder as a number": [/^workingDirectory must be a string, not 5$/, (c) => c.convertTranscript(bytes, "claude", { workingDirectory: 5 as never })],
  "a harness to import as a number": [/^harness must be a string, not 5$/, (c) => c.session("s").importTranscript(bytes, { harness: 5 as never })],
  "cursors as a text": [/^after must be a list of cursors, not "s"$/, (c) => c.watch({ after: "s" as never }).next()],
  "a hook as a text": [/^preCompact must be a function, not "x"$/, (c) => c.runHooks({ preCompact: "x" as never })],
  "one session of hooks": [/^sessionIds must be a list, not "s"$/, (c) => c.runHooks({ preCompact() {}, sessionIds: "s" as never })],
  "a deadline as a text": [/^deadlineMs must be milliseconds, not "5s"$/, (c) => c.runHooks({ preCompact() {}, deadlineMs: "5s" as never })],
  "a lease that is no number": [/^leaseMs must be milliseconds, not NaN$/, (c) => c.runSummaries({ workerId: "w", write: () => "", leaseMs: Number.NaN })],
  "no function that writes": [/^write must be a function, not undefined$/, (c) => c.runSummaries({ workerId: "w" } as never)],
  "no address": [/^address must be a string, not null$/, () => new Client(null as never)],
  "credentials as a text": [/^credentials must be an object, not "token"$/, () => new Client("", { credentials: "token" as never })],
  "a token that is no file": [/^credentials has no option token$/, () => new Client("", { credentials: { token: "t" } as never })],
  "a file as a number": [/^credentials\.tokenFile must be the name of a file, not 5$/, () => new Client("", { credentials: { tokenFile: 5 as never } })],
  "how to sleep as a number": [/^sleep must be a function, not 5$/, () => new Client("", { sleep: 5 as never })],
  "arguments that are missing": [/^args must be a text or an object, not undefined$/, () => toolCall("c", "x", never)],
  "a provider's block as a number": [/^block must be a text or an object, not 5$/, () => providerBlock("p", 5 as never)],
  "an address of media as a text": [/^source must be a Uint8Array or a URL, not "https:\/\/e\.org\/a\.png"$/, () => media("image/png", "https://e.org/a.png" as never)],
  "marks as a text": [/^cache must be true or false, not "no"$/, () => new Context(anthropic, never).requestParams({ cache: "no" as never })],
  "an option that no context has": [/^a context has no option cached$/, () => new Context(anthropic, never).requestBody({}, { cached: true } as never)],
  "a context's lines as a text": [/^lines must be a list of Uint8Arrays, not "x"$/, () => hashOf("x" as never)],
  "flags as a text": [/^args must be a list of flags, not "--store memory"$/, () => startSidecar({ args: "--store memory" as never })],
  "no response of Gemini": [/^the response is none of Gemini's: \{ foo: 1 \}$/, () => gemini({ foo: 1 } as never)],
  "no usage of Anthropic": [/^the response is none of Anthropic's Messages: undefined$/, () => claudeUsage(never)],
  "a call of a chat in its old form": [/^function_call: is not read; give the call in tool_calls$/, () => chatEvents({ choices: [{ message: { function_call: { name: "f", arguments: "{}" } } }] } as never)],
  "no usage of a chat": [/^the response is none of OpenAI's Chat Completions: 5$/, () => chatUsage(5 as never)],
  "no usage of Responses": [/^the response is none of OpenAI's Responses: \{\}$/, () => responsesUsage({} as never)],
  "no usage of Gemini": [/^the response is none of Gemini's: null$/, () => geminiUsage(null as never)],
};

for (const [what, [message, call]] of Object.entries(wrong)) {
  test(`${what} is a TypeError`, { skip }, async () => {
    await assert.rejects(async () => call(d.client), { name: "TypeError", message });
  });
}
