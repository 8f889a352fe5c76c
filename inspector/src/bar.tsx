import { count, short } from "./numbers";
import { counted, type Entry } from "./timeline";

const names: Record<string, string> = { system: "system", summary: "summary", dialogue: "dialogue", tool_results: "tool results" };

export function tierName(tier: string): string {
  return names[tier] ?? tier;
}

// Bar draws a context relative to its budget: its tiers above, and the part that the provider's cache may
// have below. Patterns distinguish the parts as well as colours.
export function Bar({ entry: e, most }: { entry: Entry; most: number }) {
  const wide = (tokens: number) => (most > 0 ? (100 * tokens) / most : 0) + "%";
  const real = counted(e);
  return (
    <span class="meter" role="img" aria-label={describe(e)} title={describe(e)}>
      <span class="tiers">
        {e.tiers.length > 0 ? (
          e.tiers.map((t) => <span key={t.tier} class={"part " + t.tier} style={{ width: wide(t.tokens) }} />)
        ) : (
          <span class="part unknown" style={{ width: wide(e.sent) }} />
        )}
      </span>
      <span class="prefix">
        {e.kept !== undefined && <span class="part kept" style={{ width: wide(e.kept) }} />}
        <span class={"part " + (e.cause === "" ? "new" : "rewritten")} style={{ width: wide(e.sent - (e.kept ?? 0)) }} />
      </span>
      <span class="target" style={{ left: wide(e.target) }} />
      {real > 0 && <span class="real" style={{ left: wide(real) }} />}
    </span>
  );
}

function describe(e: Entry): string {
  const parts = [`${count(e.sent)} of ${count(e.target)} tokens`];
  if (e.tiers.length > 0) parts.push(e.tiers.map((t) => `${tierName(t.tier)} ${short(t.tokens)}`).join(", "));
  if (e.kept !== undefined) parts.push(`${count(e.kept)} of them as before`);
  const real = counted(e);
  if (real > 0) parts.push(`the provider counted ${count(real)}`);
  return parts.join("; ");
}

export function Legend() {
  return (
    <ul class="legend" aria-label="What the bars show">
      {Object.keys(names).map((t) => (
        <li key={t}>
          <span class={"swatch part " + t} /> {names[t]}
        </li>
      ))}
      <li>
        <span class="swatch part kept" /> prefix kept
      </li>
      <li>
        <span class="swatch part new" /> new
      </li>
      <li>
        <span class="swatch part rewritten" /> prefix rewritten
      </li>
      <li>
        <span class="swatch target-swatch" /> target
      </li>
      <li>
        <span class="swatch real-swatch" /> counted by the provider
      </li>
    </ul>
  );
}
