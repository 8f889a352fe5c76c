import { readFile } from "node:fs/promises";
import type { DescMessage } from "@bufbuild/protobuf";
import type { ExportReport } from "./gen/contextd/v1/transcript_pb.js";
import { checkMembers, wrong } from "./members.js";

/** A transcript of a harness: the path of a file, or its bytes. */
export type TranscriptSource = string | URL | Uint8Array;

/** A transcript that the daemon wrote. */
export interface Transcript {
  data: Uint8Array;
  /** How many entries and compactions it has, and what the harness cannot represent. */
  report: ExportReport | undefined;
}

const pieceBytes = 256 << 10;

/** The bytes of a transcript. They are kept in memory, so that an upload can be retried. */
export async function bytesOf(source: TranscriptSource): Promise<Uint8Array> {
  if (source instanceof Uint8Array) return source;
  if (typeof source === "string" || source instanceof URL) return await readFile(source);
  throw wrong("source", "the path of a transcript or its bytes", source);
}

/** A function that returns the messages of an upload, for each try: a header, then the bytes. */
export function upload<Header extends object>(schema: DescMessage, header: Header, data: Uint8Array) {
  checkMembers(schema, header);
  return () => parts(header, data);
}

async function* parts<Header>(header: Header, data: Uint8Array) {
  yield { part: { case: "header" as const, value: header } };
  for (let at = 0; at < data.length; at += pieceBytes) {
    yield { part: { case: "data" as const, value: data.subarray(at, at + pieceBytes) } };
  }
}

/** The transcript of a whole answer, whose last part has the report. */
export async function gathered(parts: AsyncIterable<{ data: Uint8Array; report?: ExportReport | undefined }>): Promise<Transcript> {
  const received: Uint8Array[] = [];
  let report: ExportReport | undefined;
  for await (const part of parts) {
    received.push(part.data);
    report = part.report ?? report;
  }
  return { data: Buffer.concat(received), report };
}
