import type {
  Response,
  ResponseOutputItem,
  ResponseOutputMessage,
  ResponseReasoningItem,
} from "openai/resources/responses/responses";
import { answered, asCount, asText, type BlockInit, beside, called, checkResponse, elements, type EventInit, providerBlock } from "../events.js";
import type { ModelCall } from "../session.js";
import { freeInput, said } from "./content.js";

const api = "OpenAI's Responses";

/**
 * The model's response, as one event to append. Calls of OpenAI's tools that the runtime runs, such
 * as its shell, are calls of tools of that name. Items of tools that OpenAI ran itself are kept unchanged. Reasoning keeps its item, since the provider requires it later.
 */
export function responsesEvents(response: Response): EventInit[] {
  checkResponse(api, response, "output");
  return answered(response.id, response.model, elements(response.output).flatMap(item));
}

function item(i: ResponseOutputItem): BlockInit[] {
  const untyped = i as Partial<ResponseOutputMessage>;
  if (!i.type && (untyped.role ?? untyped.content) != null) return words(untyped); // a message's type may be left out
  switch (i.type) {
    case "message":
      return words(i);
    case "reasoning":
      return reasoning(i);
    case "function_call":
      return called(besideCall(i), i.call_id, i.name, i.arguments);
    case "custom_tool_call":
      return called(besideCall(i), i.call_id, i.name, freeInput(i.input));
    case "local_shell_call":
      return runHere(i, "local_shell", "action");
    case "apply_patch_call":
      return runHere(i, "apply_patch", "operation");
    case "computer_call":
      return runHere(i, "computer", "action", "actions");
    case "shell_call": // in a container it is OpenAI's to run
      if (i.environment?.type?.startsWith("container")) return [providerBlock("openai", i)];
      return runHere(i, "shell", "action");
    default:
      return [providerBlock("openai", i)];
  }
}

function words(message: Partial<ResponseOutputMessage>): BlockInit[] {
  const phase = beside("openai", message, "phase");
  return said(message.content).flatMap((block) => [...phase, block]);
}

/** A call of a tool of OpenAI's that the runtime runs. Its input is in one of the members; old items have no call_id. */
function runHere(call: { call_id?: string | null; id?: string }, name: string, ...members: string[]): BlockInit[] {
  const given = call as Record<string, unknown>;
  const member = members.find((one) => given[one] !== undefined && given[one] !== null);
  const input = member === undefined ? "" : given[member];
  const isInput = member === undefined || (typeof input === "object" && !Array.isArray(input));
  return called([], call.call_id || call.id, name, isInput ? input : { [member]: input });
}

function besideCall(call: object): BlockInit[] {
  return beside("openai", call, "namespace", "caller", "async");
}

const sealed = ["type", "id", "summary", "content", "encrypted_content", "status"] as const;

/**
 * A seal is only valid for the unchanged item, so the item is kept as the signature where its id and texts do not say all of it.
 * Servers of open models give no seal, but the reasoning itself as content, which is what they want back.
 */
function reasoning(r: ResponseReasoningItem): BlockInit[] {
  const [own, summary] = [elements(r.content), elements(r.summary)].map((parts) => parts.map((part) => asText(part.text))) as [string[], string[]];
  const wanted = summary.length === 0 || (!r.encrypted_content && own.some((part) => part.trim()));
  const parts = wanted ? own : summary;
  const thought = parts.join("\n\n");
  if (!r.encrypted_content) return thought.trim() ? [{ kind: { case: "thinking", value: { text: thought } } }] : [];
  const plain = parts.length <= 1 && r.content == null && r.status == null;
  const item = Object.fromEntries(sealed.filter((name) => r[name] != null).map((name) => [name, r[name]]));
  const signature = plain ? asText(r.id) : JSON.stringify(item);
  return [{ kind: { case: "thinking", value: { text: thought, signature, encryptedContent: r.encrypted_content } } }];
}

/** The provider's token counts, for Session.recordModelCall. */
export function responsesUsage(response: Response): ModelCall {
  checkResponse(api, response, "output");
  return {
    model: asText(response.model),
    inputTokens: asCount(response.usage?.input_tokens),
    cacheReadTokens: asCount(response.usage?.input_tokens_details?.cached_tokens),
    cacheWriteTokens: asCount(response.usage?.input_tokens_details?.cache_write_tokens),
    outputTokens: asCount(response.usage?.output_tokens),
    stopReason: asText(response.incomplete_details?.reason) || asText(response.status),
  };
}
