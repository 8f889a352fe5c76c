// The messages of a recorded context, rebuilt by the daemon.
import { contexts } from "./api";
import { MessageForm, type RenderedMessage } from "./gen/contextd/v1/assembly_pb";
import type { ReplayProjectionResponse } from "./gen/contextd/v1/projection_pb";

export type Rendered = { replay: ReplayProjectionResponse; messages: RenderedMessage[] };

export async function render(session: string, projection: string, messageForm: MessageForm, signal: AbortSignal): Promise<Rendered> {
  let replay: ReplayProjectionResponse | undefined;
  const messages: RenderedMessage[] = [];
  for await (const { part } of contexts.renderProjection({ sessionId: session, projectionId: projection, messageForm }, { signal })) {
    if (part.case === "replay") replay = part.value;
    else if (part.case === "chunk") messages.push(...part.value.messages);
  }
  if (replay?.recorded === undefined) throw new Error("the daemon's answer has no record");
  return { replay, messages };
}
