// Writes rendered messages as TypeScript literals that have to satisfy the types of the
// official SDKs, for the compiler to check.
//
//   generate.mjs folder [most] < messages
//
// Reads what the Go program next to this folder prints. Of each format it takes at most so
// many messages, evenly spread. Texts are cut: no type looks at how long they are.

import { createInterface } from "node:readline";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const [folder, most = "4000"] = process.argv.slice(2);
const perFile = 500;
const longest = 120;

const types = {
  anthropic: "MessageParam",
  gemini: "Content",
  openai_chat: "ChatCompletionMessageParam",
  openai_responses: "ResponseInputItem",
};

const imports = `import type { MessageParam, TextBlockParam } from "@anthropic-ai/sdk/resources/messages";
import type { Content, Language, Outcome } from "@google/genai";
import type { ChatCompletionMessageParam } from "openai/resources/chat/completions";
import type { ResponseInputItem } from "openai/resources/responses/responses";
`;

// What the types have to refuse, or the check is worth nothing.
const refused = `${imports}
// @ts-expect-error
({ role: "user", content: [{ type: "text" }] }) satisfies MessageParam;
// @ts-expect-error
([{ type: "text", text: "x", more: 1 }]) satisfies TextBlockParam[];
// @ts-expect-error
({ role: "user", parts: [{ text: 1 }] }) satisfies Content;
// @ts-expect-error
({ role: "tool", content: "x" }) satisfies ChatCompletionMessageParam;
// @ts-expect-error
({ type: "function_call", call_id: "a", name: "f" }) satisfies ResponseInputItem;
`;

// enums are members whose texts are those of an enumeration, which no text is for the
// compiler.
const enums = { executableCode: { language: "Language" }, codeExecutionResult: { outcome: "Outcome" } };

// literal is a value as TypeScript, with its texts cut.
function literal(value, of = {}) {
  if (typeof value === "string") {
    return JSON.stringify(value.length > longest ? value.slice(0, longest).toWellFormed() : value);
  }
  if (Array.isArray(value)) return `[${value.map((item) => literal(item)).join(",")}]`;
  if (value !== null && typeof value === "object") {
    const members = Object.entries(value).map(([name, v]) => {
      const key = name === "__proto__" ? `["__proto__"]` : JSON.stringify(name);
      const type = of[name];
      return type ? `${key}:(${literal(v)} satisfies \`\${${type}}\`) as ${type}` : `${key}:${literal(v, enums[name])}`;
    });
    return `{${members.join(",")}}`;
  }
  return typeof value === "number" && !Number.isFinite(value) ? "Number.MAX_VALUE" : JSON.stringify(value);
}

let unnamed = 0;

// satisfying is the statement that a message is of its type.
function satisfying(format, message) {
  if (format === "anthropic" && "system" in message) return `(${literal(message.system)}) satisfies TextBlockParam[];`;
  if (format === "gemini" && "systemInstruction" in message) return `(${literal(message.systemInstruction)}) satisfies Content;`;
  if (format === "openai_responses" && message.type === "reasoning" && !("id" in message)) {
    // The API takes an item whose id nobody kept; the type wants one.
    unnamed++;
    message = { ...message, id: "rs_0" };
  }
  return `(${literal(message)}) satisfies ${types[format]};`;
}

const byFormat = new Map(Object.keys(types).map((format) => [format, []]));
for await (const row of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  const { format, line } = JSON.parse(row);
  byFormat.get(format).push(line);
}

mkdirSync(folder, { recursive: true });
writeFileSync(join(folder, "refused.ts"), refused);
for (const [format, lines] of byFormat) {
  const step = Math.max(1, Math.ceil(lines.length / Number(most)));
  const statements = lines.filter((_, i) => i % step === 0).map((line) => satisfying(format, JSON.parse(line)));
  for (let i = 0; i < statements.length; i += perFile) {
    writeFileSync(join(folder, `${format}.${i / perFile}.ts`), `${imports}\n${statements.slice(i, i + perFile).join("\n")}\n`);
  }
  console.log(`${format}: ${statements.length} of ${lines.length} messages`);
}
if (unnamed > 0) console.log(`of these, ${unnamed} items of reasoning were given an id for the check`);
