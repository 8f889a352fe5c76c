// Runs the JavaScript libraries over sessions: peers.mjs SECONDS IN OUT. See doc.go for both files.
import { createWriteStream, readFileSync } from "node:fs";
import { pruneMessages } from "ai";
import { TokenLimiterProcessor } from "@mastra/core/processors";

const target = 29491; // tokens: what contextd has of a window of 32,768

/** A message in the form of the AI SDK, which both take. */
function made(m, i) {
  const parts = m.text ? [{ type: "text", text: m.text }] : [];
  if (m.role === "system") return { role: "system", content: m.text ?? "", of: i };
  if (m.role === "tool") {
    const output = { type: m.failed ? "error-text" : "text", value: m.text ?? "" };
    return { role: "tool", content: [{ type: "tool-result", toolCallId: m.call_id, toolName: m.tool, output }], of: i };
  }
  for (const c of m.calls ?? []) parts.push({ type: "tool-call", toolCallId: c.id, toolName: c.tool, input: c.arguments });
  return { role: m.role, content: parts, of: i };
}

/** What is left of the messages. */
function items(messages) {
  return messages.map((m) => {
    if (m.role === "system" || m.role === "tool") return { i: m.of };
    const text = m.content.filter((p) => p.type === "text").map((p) => p.text).join("");
    return { i: m.of, text, calls: m.content.filter((p) => p.type === "tool-call").map((p) => p.toolCallId) };
  });
}

const peers = {
  "AI SDK pruneMessages(before-last-6)": () => (messages) =>
    pruneMessages({ messages, toolCalls: "before-last-6-messages", emptyMessages: "remove" }),
  "Mastra TokenLimiter": () => {
    const limiter = new TokenLimiterProcessor({ limit: target });
    return async (prompt) => (await limiter.processLLMRequest({ prompt }))?.prompt ?? prompt;
  },
};

const [seconds, source, to] = process.argv.slice(2);
const out = createWriteStream(to);
for (const line of readFileSync(source, "utf8").split("\n")) {
  if (!line) continue;
  const session = JSON.parse(line);
  const messages = session.messages.map(made);
  for (const [peer, make] of Object.entries(peers)) {
    const turn = make();
    let left = Number(seconds);
    for (const step of session.steps) {
      const before = messages.slice(0, step);
      const begun = performance.now();
      const shown = await turn(before);
      const took = (performance.now() - begun) / 1000;
      out.write(`${JSON.stringify({ session: session.name, peer, step, seconds: took, items: items(shown) })}\n`);
      if ((left -= took) >= 0) continue;
      console.error(`${peer} left ${session.name} after ${seconds} s`);
      break;
    }
  }
}
out.end();
