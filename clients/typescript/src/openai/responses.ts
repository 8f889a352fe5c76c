import type {
  Response,
  ResponseOutputItem,
  ResponseReasoningItem,
} from "openai/resources/responses/responses";
import { answered, type BlockInit, beside, checkResponse, type EventInit, providerBlock, toolCall } from "../events.js";
import type { ModelCall } from "../session.js";
import { freeInput, said } from "./content.js";

const api = "OpenAI's Responses";

/**
 * The model's response, as one event to append. Calls of OpenAI's tools that the runtime runs, such
 * as its shell, are calls of tools of that name. Items of tools that OpenAI ran itself are kept unchanged. Reasoning keeps its item, since the provider requires it later.
 */
export function responsesEvents(response: Response): EventInit[] {
  checkResponse(api, response, "output");
  return answered(response.id, response.model, response.output.flatMap(item));
}

function item(i: ResponseOutputItem): BlockInit[] {
  switch (i.type) {
    case "message": {
      const phase = beside("openai", i, "phase");
      return said(i.content).flatMap((block) => [...phase, block]);
    }
    case "reasoning":
      return reasoning(i);
    case "function_call":
      return [...besideCall(i), toolCall(i.call_id, i.name, i.arguments ?? "")];
    case "custom_tool_call":
      return [...besideCall(i), toolCall(i.call_id, i.name, freeInput(i.input))];
    case "local_shell_call":
      return [runHere(i, "local_shell", "action")];
    case "apply_patch_call":
      return [runHere(i, "apply_patch", "operation")];
    case "computer_call":
      return [runHere(i, "computer", "action", "actions")];
    case "shell_call": // in a container it is OpenAI's to run
      if (i.environment?.type?.startsWith("container")) return [providerBlock("openai", i)];
      return [runHere(i, "shell", "action")];
    default:
      return [providerBlock("openai", i)];
  }
}

/** A call of a tool of OpenAI's that the runtime runs. Its input is in one of the members; old items have no call_id. */
function runHere(call: { call_id?: string | null; id?: string }, name: string, ...members: string[]): BlockInit {
  const given = call as Record<string, unknown>;
  const member = members.find((one) => given[one] !== undefined && given[one] !== null);
  const input = member === undefined ? "" : given[member];
  const isInput = member === undefined || (typeof input === "object" && !Array.isArray(input));
  return toolCall(call.call_id || (call.id ?? ""), name, isInput ? (input as object | string) : { [member]: input });
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
  const own = r.content ?? [];
  const wanted = !r.summary?.length || (!r.encrypted_content && own.some((part) => part.text.trim()));
  const parts = wanted ? own : r.summary;
  const words = parts.map((part) => part.text).join("\n\n");
  if (!r.encrypted_content) return words.trim() ? [{ kind: { case: "thinking", value: { text: words } } }] : [];
  const plain = parts.length <= 1 && r.content == null && r.status == null;
  const item = Object.fromEntries(sealed.filter((name) => r[name] != null).map((name) => [name, r[name]]));
  const signature = plain ? r.id : JSON.stringify(item);
  return [{ kind: { case: "thinking", value: { text: words, signature, encryptedContent: r.encrypted_content } } }];
}

/** The provider's token counts, for Session.recordModelCall. */
export function responsesUsage(response: Response): ModelCall {
  checkResponse(api, response, "output");
  return {
    model: response.model ?? "",
    inputTokens: response.usage?.input_tokens ?? 0,
    cacheReadTokens: response.usage?.input_tokens_details?.cached_tokens ?? 0,
    cacheWriteTokens: response.usage?.input_tokens_details?.cache_write_tokens ?? 0,
    outputTokens: response.usage?.output_tokens ?? 0,
    stopReason: response.incomplete_details?.reason ?? response.status ?? "",
  };
}
