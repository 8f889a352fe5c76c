// The differences between two contexts, as in "contextd diff".
import type { RenderedMessage } from "./gen/contextd/v1/assembly_pb";

export type Change =
  | { kind: "same" | "changed"; from: RenderedMessage; to: RenderedMessage }
  | { kind: "gone"; from: RenderedMessage }
  | { kind: "new"; to: RenderedMessage };

// keys identify messages across contexts: by their event, or by what contextd wrote them for.
function keys(messages: RenderedMessage[]): string[] {
  const seen = new Map<string, number>();
  return messages.map((m) => {
    const shown = m.sourceSeqs.length > 0 ? String(m.sourceSeqs[0]) : m.origin + " " + m.cause;
    const nth = seen.get(shown) ?? 0;
    seen.set(shown, nth + 1);
    return shown + " " + nth;
  });
}

export function changesBetween(from: RenderedMessage[], to: RenderedMessage[]): Change[] {
  const fromKeys = keys(from);
  const toKeys = keys(to);
  // The messages of each context that are still to come.
  const inFrom = new Set(fromKeys);
  const inTo = new Set(toKeys);
  const out: Change[] = [];
  let i = 0;
  let j = 0;
  while (i < from.length || j < to.length) {
    if (i < from.length && j < to.length && fromKeys[i] === toKeys[j]) {
      out.push({ kind: equal(from[i]!.json, to[j]!.json) ? "same" : "changed", from: from[i]!, to: to[j]! });
      i++;
      j++;
    } else if (i < from.length && (j === to.length || !inTo.has(fromKeys[i]!) || inFrom.has(toKeys[j]!))) {
      // Gone, or moved: a moved message is listed as new at its new place.
      out.push({ kind: "gone", from: from[i]! });
      inFrom.delete(fromKeys[i]!);
      i++;
    } else {
      out.push({ kind: "new", to: to[j]! });
      inTo.delete(toKeys[j]!);
      j++;
    }
  }
  return out;
}

function equal(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && common(a, b) === a.length;
}

function common(a: Uint8Array, b: Uint8Array): number {
  const most = Math.min(a.length, b.length);
  let n = 0;
  while (n < most && a[n] === b[n]) n++;
  return n;
}

// Break is where two contexts begin to differ: the message, the byte within it, and the byte of the whole
// context as JSON Lines.
export type Break = {
  message: number;
  byte: number;
  offset: number;
  tokens: number; // of the messages before it
  before: string; // what both have last
  from: string; // what comes then in each; empty: the context ends
  to: string;
};

const around = 80;

// breakOf is where the common prefix of two contexts ends; undefined if the first is a prefix of the second.
export function breakOf(from: RenderedMessage[], to: RenderedMessage[]): Break | undefined {
  let offset = 0;
  let tokens = 0;
  for (let i = 0; i < from.length; i++) {
    const a = from[i]!.json;
    const b = to[i]?.json ?? new Uint8Array();
    const n = common(a, b);
    if (n < a.length || n < b.length || to[i] === undefined) {
      const decoder = new TextDecoder();
      const text = (bytes: Uint8Array, start: number, end: number) => decoder.decode(bytes.subarray(start, end));
      return {
        message: i, byte: n, offset: offset + n, tokens,
        before: text(a, Math.max(0, n - around), n), from: text(a, n, n + around), to: text(b, n, n + around),
      };
    }
    offset += a.length + 1;
    tokens += from[i]!.tokens;
  }
  return undefined;
}

// Fold is a change, or a run of unchanged messages.
export type Fold = Change | { kind: "run"; messages: number; tokens: number };

const foldFrom = 3;

export function fold(changes: Change[]): Fold[] {
  const out: Fold[] = [];
  for (let i = 0; i < changes.length; ) {
    let run = 0;
    let tokens = 0;
    for (let c = changes[i]; c?.kind === "same"; c = changes[i + run]) {
      tokens += c.to.tokens;
      run++;
    }
    if (run >= foldFrom) {
      out.push({ kind: "run", messages: run, tokens });
      i += run;
    } else {
      out.push(changes[i]!);
      i++;
    }
  }
  return out;
}
