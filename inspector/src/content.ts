// Summaries of events and messages in one line.
import { Role, type Block, type Event, type Message } from "./gen/contextd/v1/event_pb";
import { count } from "./numbers";
import { decode, line } from "./text";

const roles: Record<Role, string> = {
  [Role.UNSPECIFIED]: "",
  [Role.SYSTEM]: "system",
  [Role.USER]: "user",
  [Role.ASSISTANT]: "assistant",
  [Role.TOOL]: "tool",
};

export function roleName(role: Role): string {
  return roles[role] ?? "";
}

export function who(event: Event): string {
  switch (event.kind.case) {
    case "message":
      return event.labels["harness.injected"] === "true" ? "injected" : roleName(event.kind.value.role);
    case undefined:
      return "";
    default:
      return event.kind.case;
  }
}

export function summaryOf(event: Event): string {
  switch (event.kind.case) {
    case "message":
      return messageLine(event.kind.value);
    case "reminder":
      return line(event.kind.value.body);
    case "compaction":
      return line(event.kind.value.summary || [event.kind.value.mode, event.kind.value.strategy].filter(Boolean).join(" ") || "a compaction");
    case "custom":
      return line(event.kind.value.type + " " + decode(event.kind.value.json.subarray(0, 400)));
    default:
      return "";
  }
}

export function messageLine(m: Message): string {
  return line(m.blocks.slice(0, 8).map(blockLine).filter(Boolean).join("  "));
}

function blockLine(b: Block): string {
  switch (b.kind.case) {
    case "text":
      return line(b.kind.value.text);
    case "thinking":
      return "thinking: " + (line(b.kind.value.text) || "sealed by its provider");
    case "toolCall":
      return b.kind.value.name + " " + line(decode(b.kind.value.argumentsJson.subarray(0, 1000)));
    case "toolResult":
      return (b.kind.value.isError ? "failed: " : "") + (b.kind.value.content.map(blockLine).join(" ") || "nothing");
    case "media":
      return mediaLine(b.kind.value.mimeType, b.kind.value.data.length, b.kind.value.uri);
    case "provider":
      return b.kind.value.provider + " " + line(decode(b.kind.value.json.subarray(0, 400)));
    default:
      return "";
  }
}

export function mediaLine(type: string, size: number, uri: string): string {
  return (type || "media") + (uri ? " at " + line(uri, 120) : ", " + count(size) + " bytes");
}
