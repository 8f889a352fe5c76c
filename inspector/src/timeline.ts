// The timeline of a session, call by call, made from the daemon's records.
import { BudgetState } from "./gen/contextd/v1/budget_pb";
import type { LifecycleEvent } from "./gen/contextd/v1/lifecycle_pb";
import type { Projection, ReducerStep } from "./gen/contextd/v1/projection_pb";
import type { ModelCall } from "./gen/contextd/v1/tokens_pb";
import { groups } from "./groups";
import { count } from "./numbers";

export const tiers = ["system", "summary", "dialogue", "tool_results"] as const;
export type Tier = (typeof tiers)[number];

// Cause is why a prefix was rewritten: the context no longer fitted, the provider's cache had expired anyway,
// or enough had become due to pay for it.
export type Cause = "full" | "cold" | "batch" | "";

// Entry is a context that was assembled for a model call.
export type Entry = {
  kind: "context";
  number: number;
  projection: Projection;
  target: number;
  sent: number;
  raw: number; // 0: not recorded
  state: BudgetState;
  tiers: { tier: Tier; tokens: number }[]; // empty: not recorded
  // kept is the number of tokens of the unchanged prefix; undefined for the first context, or if it was not
  // recorded.
  kept: number | undefined;
  cause: Cause;
  changes: string[];
  calls: ModelCall[];
};

// Mark is a lifecycle event between contexts.
export type Mark = { kind: "mark"; event: LifecycleEvent; text: string };

export type Row = Entry | Mark;

export function entries(projections: Projection[], calls: ModelCall[]): Entry[] {
  const callsOf = groups(calls, (c) => c.projectionId);
  const before = new Map<string, Entry>();
  return projections.map((p, i) => {
    const stream = p.policyFingerprint + "/" + p.format;
    const entry = entryOf(p, i + 1, callsOf.get(p.projectionId) ?? [], before.get(stream));
    before.set(stream, entry);
    return entry;
  });
}

function entryOf(p: Projection, number: number, calls: ModelCall[], before: Entry | undefined): Entry {
  const b = p.budget;
  const sent = Number(b?.projectedTokens ?? 0);
  const raw = Number(b?.rawTokens ?? 0);
  const target = Number(b?.targetTokens ?? 0);
  return {
    kind: "context", number, projection: p, target, sent, raw, calls,
    state: b?.state ?? BudgetState.UNSPECIFIED,
    tiers: tiers.filter((t) => b?.tierTokens[t]).map((tier) => ({ tier, tokens: Number(b!.tierTokens[tier]) })),
    kept: p.cache === undefined ? undefined : Math.min(Number(p.cache.stableTokens), sent),
    cause: causeOf(p, before === undefined ? 0 : before.sent + Math.max(0, raw - before.raw), target),
    changes: changes(p, before?.projection),
  };
}

// causeOf distinguishes a forced rewrite from a chosen one. untouched is the size that the context would have
// had without it.
function causeOf(p: Projection, untouched: number, target: number): Cause {
  if (!p.cache?.brokenBy) return "";
  if (untouched > target) return "full";
  return expired(p.steps) ? "cold" : "batch";
}

function expired(steps: ReducerStep[]): boolean {
  return steps.some((s) => s.note.includes("cache has expired"));
}

// changes says in a few words what this context changed compared with the last one.
function changes(p: Projection, before: Projection | undefined): string[] {
  const out: string[] = [];
  const dropped = p.droppedCount - (before?.droppedCount ?? 0);
  if (dropped > 0) out.push("cut " + dropped + " " + (dropped === 1 ? "event" : "events"));
  if (p.summaryId !== "" && p.summaryId !== (before?.summaryId ?? "")) out.push("new summary");
  const redacted = p.redactedCount - (before?.redactedCount ?? 0);
  if (redacted > 0) out.push(redacted + " shortened");
  if (p.cache?.brokenBy) out.push("rewritten by " + p.cache.brokenBy);
  if (!p.cache?.brokenBy && expired(p.steps)) out.push("the provider's cache had expired");
  if (before !== undefined && before.policyFingerprint !== p.policyFingerprint) out.push("other policy or window");
  if (p.shadow !== undefined) out.push(p.shadow.policy + " would have " + (p.shadow.overBudget ? "refused" : "sent " + count(Number(p.shadow.tokens))));
  return out;
}

// counted is the provider's count of a context's tokens; 0 if it was not reported.
export function counted(e: Entry): number {
  return Number(e.calls.at(-1)?.inputTokens ?? 0n);
}

// cached is how many tokens the provider read from its cache, as reported.
export function cached(e: Entry): number {
  return Number(e.calls.at(-1)?.cacheReadTokens ?? 0n);
}

function number(decimal: string | undefined): string {
  return decimal === undefined ? "?" : count(Number(decimal));
}

const texts: Record<string, (a: Record<string, string>) => string> = {
  compaction_started: (a) => `compaction began (${a["mode"] ?? "manual"})`,
  compaction_vetoed: (a) => `compaction refused by a hook${a["reason"] ? ": " + a["reason"] : ""}`,
  compacted: (a) => `compacted, ${number(a["tokens_before"])} to ${number(a["tokens_after"])} tokens (${a["strategy"] ?? a["mode"] ?? "manual"})`,
  compaction_undone: () => "compaction undone",
  summary_ready: (a) => `summary ready of events ${a["from_seq"]} to ${a["to_seq"]}${a["summarizer"] ? ", by " + a["summarizer"] : ""}`,
  summary_failed: (a) => `summary failed of events ${a["from_seq"]} to ${a["to_seq"]}${a["reason"] ? ": " + a["reason"] : ""}`,
  reminder_expired: (a) => `reminder ${a["reminder"]} expired`,
};

// rows inserts marks between the contexts, in the order in which the daemon stored them.
export function rows(contexts: Entry[], events: LifecycleEvent[]): Row[] {
  const marks = new Map<string, Mark[]>(); // by the context that they come before; "" is the end
  let waiting: Mark[] = [];
  for (const event of events) {
    if (event.type === "projected") {
      const id = event.attributes["projection_id"] ?? "";
      if (waiting.length > 0) marks.set(id, waiting);
      waiting = [];
    } else if (texts[event.type] !== undefined) {
      waiting.push({ kind: "mark", event, text: texts[event.type]!(event.attributes) });
    }
  }
  const out: Row[] = [];
  for (const entry of contexts) {
    out.push(...(marks.get(entry.projection.projectionId) ?? []), entry);
  }
  return out.concat(waiting);
}

// columns are at most so many contexts for the overview: the largest of those that share a column.
export function columns(contexts: Entry[], most: number): Entry[] {
  if (contexts.length <= most) return contexts;
  const out: Entry[] = [];
  for (let i = 0; i < most; i++) {
    const from = Math.floor((i * contexts.length) / most);
    const to = Math.floor(((i + 1) * contexts.length) / most);
    out.push(contexts.slice(from, to).reduce((a, b) => (b.sent > a.sent ? b : a)));
  }
  return out;
}
