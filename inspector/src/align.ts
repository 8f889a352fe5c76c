// The events of the log next to the messages of a context.
import { Origin, type RenderedMessage } from "./gen/contextd/v1/assembly_pb";
import type { Summary } from "./gen/contextd/v1/compaction_pb";
import type { Projection, RedactionPointer } from "./gen/contextd/v1/projection_pb";
import { groups } from "./groups";

// Fate is what a context shows of an event.
export type Fate =
  | "kept" | "stubbed" | "clipped" | "omitted" | "redacted"
  | "summarised" | "dropped"
  | "unshown" // what no model sees, such as the mark of a compaction
  | "written"; // by contextd, in no event

export type AlignedRow = {
  seq: number; // 0: contextd wrote it
  fate: Fate;
  // message is the index of the message that shows the event, or -1. again is set if an earlier row shows the
  // same message.
  message: number;
  again: boolean;
};

export type Alignment = {
  rows: AlignedRow[];
  pointers: Map<number, RedactionPointer[]>;
  counts: Map<Fate, number>;
};

const order: Fate[] = ["redacted", "omitted", "stubbed", "clipped"];

export function align(p: Projection, messages: RenderedMessage[], summary: Summary | undefined): Alignment {
  const pointers = groups(p.redactionPointers, (r) => Number(r.sourceSeq));
  const head = Number(p.asOfSeq);
  const dropped = new Set(p.droppedSeqs.map(Number));
  const kept = new Set(p.keptSeqs.map(Number));
  const shownBy = new Int32Array(head + 1).fill(-1);
  const writtenAfter = new Map<number, number[]>(); // by the event that they come after
  let newest = 0;
  messages.forEach((m, i) => {
    if (m.origin === Origin.SUMMARY || m.sourceSeqs.length === 0) {
      writtenAfter.set(newest, [...(writtenAfter.get(newest) ?? []), i]);
      return;
    }
    for (const seq of m.sourceSeqs) {
      const n = Number(seq);
      if (n <= head && shownBy[n] === -1) shownBy[n] = i;
      newest = Math.max(newest, n);
    }
  });
  const rows: AlignedRow[] = [];
  const counts = new Map<Fate, number>();
  const add = (row: AlignedRow) => {
    rows.push(row);
    counts.set(row.fate, (counts.get(row.fate) ?? 0) + 1);
  };
  const written = (after: number) => {
    for (const i of writtenAfter.get(after) ?? []) add({ seq: 0, fate: "written", message: i, again: false });
  };
  written(0);
  let before = -1;
  for (let seq = 1; seq <= head; seq++) {
    const message = shownBy[seq]!;
    let fate: Fate = "unshown";
    if (dropped.has(seq)) fate = summary && summary.fromSeq <= seq && seq <= summary.toSeq ? "summarised" : "dropped";
    else if (kept.has(seq)) fate = fateOf(pointers.get(seq));
    add({ seq, fate, message: fate === "dropped" || fate === "summarised" ? -1 : message, again: message >= 0 && message === before });
    if (message >= 0) before = message;
    written(seq);
  }
  return { rows, pointers, counts };
}

function fateOf(pointers: RedactionPointer[] | undefined): Fate {
  if (pointers === undefined) return "kept";
  return order.find((f) => pointers.some((p) => p.decision === f)) ?? "clipped";
}

// why explains in a sentence what was done to an event.
export function why(row: AlignedRow, a: Alignment, p: Projection): string {
  switch (row.fate) {
    case "kept":
      return "";
    case "dropped":
      return "The budget forced it out; its calls are lines of the ledger.";
    case "summarised":
      return "It is replaced by summary " + p.summaryId + "; its calls are lines of the ledger.";
    case "unshown":
      return "No model is shown events of this kind.";
    case "written":
      return "contextd wrote it: it is in no event of the log.";
    default:
      return (a.pointers.get(row.seq) ?? []).map((r) => `${r.decision} by ${r.policy}${r.reason ? ": " + r.reason : ""}`).join("; ");
  }
}
