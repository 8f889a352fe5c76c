import { type CallOptions, type Client as Stub, createClient, type Transport } from "@connectrpc/connect";
import { CompactionService } from "./gen/contextd/v1/compaction_service_pb.js";
import { ContextService } from "./gen/contextd/v1/context_service_pb.js";
import { TranscriptService } from "./gen/contextd/v1/transcript_service_pb.js";

/** Ends a call early: by a signal, or each of its tries after some time. */
export type CallControl = Pick<CallOptions, "signal" | "timeoutMs">;

/** Every RPC of contextd.v1, without what this package adds. */
export interface Services {
  readonly context: Stub<typeof ContextService>;
  readonly compactions: Stub<typeof CompactionService>;
  readonly transcripts: Stub<typeof TranscriptService>;
}

export function services(transport: Transport): Services {
  return {
    context: createClient(ContextService, transport),
    compactions: createClient(CompactionService, transport),
    transcripts: createClient(TranscriptService, transport),
  };
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
