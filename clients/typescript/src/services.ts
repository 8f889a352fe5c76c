import type { DescService } from "@bufbuild/protobuf";
import { type CallOptions, type Client as Stub, createClient, type Transport } from "@connectrpc/connect";
import { CompactionService } from "./gen/contextd/v1/compaction_service_pb.js";
import { ContextService } from "./gen/contextd/v1/context_service_pb.js";
import { TranscriptService } from "./gen/contextd/v1/transcript_service_pb.js";
import { checkControl, checkMembers } from "./members.js";

/** How to end a call early: by a signal, or by a timeout for each try. */
export type CallControl = Pick<CallOptions, "signal" | "timeoutMs">;

/** The plain stubs of all services of contextd.v1. */
export interface Services {
  readonly context: Stub<typeof ContextService>;
  readonly compactions: Stub<typeof CompactionService>;
  readonly transcripts: Stub<typeof TranscriptService>;
}

export function services(transport: Transport): Services {
  return {
    context: stub(ContextService, transport),
    compactions: stub(CompactionService, transport),
    transcripts: stub(TranscriptService, transport),
  };
}

/** A stub that refuses unknown members of a request or of a call's options. Parts of streamed requests are checked where they are made. */
function stub<S extends DescService>(service: S, transport: Transport): Stub<S> {
  const calls = createClient(service, transport) as Record<string, (request: object, options?: CallOptions) => unknown>;
  for (const { localName, methodKind, input } of service.methods) {
    const one = methodKind === "unary" || methodKind === "server_streaming";
    const call = calls[localName]!;
    calls[localName] = (request, options) => {
      checkControl(options);
      if (one) checkMembers(input, request);
      return call(request, options);
    };
  }
  return calls as Stub<S>;
}

/** The items of all pages. */
export async function* pages<Page extends { nextPageToken: string }, Item>(
  list: (pageToken: string) => Promise<Page>,
  items: (page: Page) => Item[],
): AsyncGenerator<Item> {
  for (let pageToken = ""; ; ) {
    const page = await list(pageToken);
    yield* items(page);
    if (!page.nextPageToken) return;
    pageToken = page.nextPageToken;
  }
}
