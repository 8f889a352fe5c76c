import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { align, why } from "../src/align";
import { Origin, RenderedMessageSchema } from "../src/gen/contextd/v1/assembly_pb";
import { SummarySchema } from "../src/gen/contextd/v1/compaction_pb";
import { ProjectionSchema } from "../src/gen/contextd/v1/projection_pb";

const message = (origin: Origin, ...seqs: number[]) => create(RenderedMessageSchema, { origin, sourceSeqs: seqs.map(BigInt) });

// Events 1 to 8: 3 and 4 are in a summary, 5 was dropped later, 6 is a mark, and 8 is a part of 7's message.
const projection = create(ProjectionSchema, {
  asOfSeq: 9n,
  keptSeqs: [1n, 2n, 7n, 8n, 9n],
  droppedSeqs: [3n, 4n, 5n],
  redactedSeqs: [9n],
  summaryId: "s",
  redactionPointers: [{ sourceSeq: 9n, decision: "stubbed", policy: "tool_results", reason: "older than 5 turns" }],
});
const messages = [message(Origin.VERBATIM, 1), message(Origin.VERBATIM, 2), message(Origin.SUMMARY, 3, 4, 5), message(Origin.VERBATIM, 7, 8), message(Origin.STUBBED, 9)];
const summary = create(SummarySchema, { summaryId: "s", fromSeq: 3n, toSeq: 4n });

describe("align", () => {
  const a = align(projection, messages, summary);
  it("lists each event once, and what contextd wrote where the model saw it", () => {
    expect(a.rows.map((r) => [r.seq, r.fate, r.message, r.again])).toEqual([
      [1, "kept", 0, false],
      [2, "kept", 1, false],
      [0, "written", 2, false],
      [3, "summarised", -1, false],
      [4, "summarised", -1, false],
      [5, "dropped", -1, false],
      [6, "unshown", -1, false],
      [7, "kept", 3, false],
      [8, "kept", 3, true],
      [9, "stubbed", 4, false],
    ]);
  });
  it("counts", () => {
    expect(Object.fromEntries(a.counts)).toEqual({ kept: 4, written: 1, summarised: 2, dropped: 1, unshown: 1, stubbed: 1 });
  });
  it("says why", () => {
    expect(why(a.rows.at(-1)!, a, projection)).toBe("stubbed by tool_results: older than 5 turns");
    expect(why(a.rows[3]!, a, projection)).toContain("summary s");
    expect(why(a.rows[0]!, a, projection)).toBe("");
  });
  it("takes 100,000 events", () => {
    const many = create(ProjectionSchema, { asOfSeq: 100_000n, droppedSeqs: Array.from({ length: 99_999 }, (_, i) => BigInt(i + 1)), keptSeqs: [100_000n] });
    expect(align(many, [message(Origin.VERBATIM, 100_000)], undefined).rows).toHaveLength(100_000);
  });
});
