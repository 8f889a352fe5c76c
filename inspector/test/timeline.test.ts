import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { LifecycleEventSchema } from "../src/gen/contextd/v1/lifecycle_pb";
import { ProjectionSchema } from "../src/gen/contextd/v1/projection_pb";
import { ModelCallSchema } from "../src/gen/contextd/v1/tokens_pb";
import { columns, counted, entries, rows } from "../src/timeline";

type Made = { id: string; sent?: number; raw?: number; stable?: number; brokenBy?: string; dropped?: number; note?: string; stream?: string };

function projection(m: Made) {
  return create(ProjectionSchema, {
    projectionId: m.id,
    policyFingerprint: m.stream ?? "f",
    droppedCount: m.dropped ?? 0,
    budget: { targetTokens: 1000n, projectedTokens: BigInt(m.sent ?? 0), rawTokens: BigInt(m.raw ?? 0), tierTokens: { dialogue: 3n, system: 4n } },
    ...(m.stable !== undefined && { cache: { stableTokens: BigInt(m.stable), brokenBy: m.brokenBy ?? "" } }),
    steps: m.note ? [{ reducer: "r", note: m.note }] : [],
  });
}

describe("entries", () => {
  it("say why a prefix was rewritten", () => {
    const all = entries(
      [
        projection({ id: "a", sent: 900, raw: 900 }),
        projection({ id: "b", sent: 500, raw: 1100, stable: 100, brokenBy: "window", dropped: 3 }),
        projection({ id: "c", sent: 550, raw: 1150, stable: 100, brokenBy: "duplicates", note: "the provider's cache has expired" }),
        projection({ id: "d", sent: 560, raw: 1160, stable: 100, brokenBy: "duplicates" }),
        projection({ id: "e", sent: 600, raw: 1200, stable: 560 }),
      ],
      [],
    );
    expect(all.map((e) => e.cause)).toEqual(["", "full", "cold", "batch", ""]);
    expect(all[1]!.changes).toEqual(["cut 3 events", "rewritten by window"]);
    expect(all.map((e) => e.kept)).toEqual([undefined, 100, 100, 100, 560]);
    expect(all[0]!.tiers).toEqual([
      { tier: "system", tokens: 4 },
      { tier: "dialogue", tokens: 3 },
    ]);
  });

  it("say what another policy would have sent", () => {
    const shadowed = (shadow: { tokens?: bigint; overBudget?: boolean }) => create(ProjectionSchema, { projectionId: "a", shadow: { policy: "frugal", ...shadow } });
    const all = entries([shadowed({ tokens: 1234n }), shadowed({ overBudget: true })], []);
    expect(all.map((e) => e.changes)).toEqual([["frugal would have sent 1,234"], ["frugal would have refused"]]);
  });

  it("compare a context with the one before under the same policy", () => {
    const all = entries([projection({ id: "a", dropped: 5 }), projection({ id: "b", dropped: 9, stream: "g" }), projection({ id: "c", dropped: 6 })], []);
    expect(all[2]!.changes).toEqual(["cut 1 event"]);
  });

  it("have what the provider counted last", () => {
    const call = (id: string, n: bigint) => create(ModelCallSchema, { projectionId: id, inputTokens: n });
    const [a, b] = entries([projection({ id: "a" }), projection({ id: "b" })], [call("b", 1n), call("b", 2n), call("", 3n)]);
    expect([counted(a!), counted(b!)]).toEqual([0, 2]);
  });
});

describe("rows", () => {
  const event = (type: string, attributes: Record<string, string> = {}) => create(LifecycleEventSchema, { type, attributes });
  it("put what happened before the context that came next", () => {
    const contexts = entries([projection({ id: "a" }), projection({ id: "b" })], []);
    const all = rows(contexts, [
      event("projected", { projection_id: "a" }),
      event("summary_ready", { from_seq: "1", to_seq: "9" }),
      event("unheard_of"),
      event("projected", { projection_id: "b" }),
      event("compaction_undone"),
    ]);
    expect(all.map((r) => (r.kind === "mark" ? r.text : r.projection.projectionId))).toEqual(["a", "summary ready of events 1 to 9", "b", "compaction undone"]);
  });
});

describe("columns", () => {
  it("are at most so many, and keep the largest", () => {
    const all = entries(Array.from({ length: 1000 }, (_, i) => projection({ id: String(i), sent: i === 501 ? 9999 : i })), []);
    const some = columns(all, 30);
    expect(some).toHaveLength(30);
    expect(some.some((e) => e.sent === 9999)).toBe(true);
    expect(columns(all.slice(0, 5), 30)).toHaveLength(5);
  });
});
