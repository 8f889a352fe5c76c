import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { breakOf, changesBetween, fold } from "../src/difference";
import { Origin, RenderedMessageSchema } from "../src/gen/contextd/v1/assembly_pb";

const encoder = new TextEncoder();
const message = (text: string, ...seqs: number[]) =>
  create(RenderedMessageSchema, { json: encoder.encode(text), sourceSeqs: seqs.map(BigInt), tokens: 10, origin: seqs.length > 0 ? Origin.VERBATIM : Origin.SUMMARY });

const from = [message("one", 1), message("two", 2), message("three", 3)];

describe("changesBetween", () => {
  it("pairs messages by their events", () => {
    const to = [message("one", 1), message("digest"), message("th", 3), message("four", 4)];
    expect(changesBetween(from, to).map((c) => c.kind)).toEqual(["same", "gone", "new", "changed", "new"]);
  });
  it("finds a message that moved", () => {
    expect(changesBetween(from, [from[0]!, from[2]!, from[1]!]).map((c) => c.kind)).toEqual(["same", "gone", "same", "new"]);
  });
});

describe("breakOf", () => {
  it("counts the bytes of JSON Lines", () => {
    expect(breakOf(from, [message("one", 1), message("twin", 2)])).toMatchObject({ message: 1, byte: 2, offset: 6, tokens: 10, before: "tw", from: "o", to: "in" });
  });
  it("sees a message that is longer, and one that is no more there", () => {
    expect(breakOf(from, [message("one", 1), message("two!", 2)])).toMatchObject({ message: 1, byte: 3, from: "", to: "!" });
    expect(breakOf(from, [message("one", 1)])).toMatchObject({ message: 1, byte: 0, offset: 4, to: "" });
  });
  it("is nowhere in a context that goes on", () => {
    expect(breakOf(from, [...from, message("four", 4)])).toBeUndefined();
    expect(breakOf([], from)).toBeUndefined();
  });
});

describe("fold", () => {
  it("makes one line of what is the same", () => {
    const to = [...from, message("four", 4)];
    expect(fold(changesBetween(from, to))).toEqual([{ kind: "run", messages: 3, tokens: 30 }, { kind: "new", to: to[3] }]);
  });
});
