import { columns, type Entry, type Row } from "./timeline";

const wide = 600;
const high = 64;

// Overview draws all contexts of a session: their sizes relative to the target, and where prefixes were
// rewritten.
export function Overview(props: { contexts: Entry[]; most: number; selected: Row | undefined; onSelect: (e: Entry) => void }) {
  const shown = columns(props.contexts, wide / 2);
  const step = wide / Math.max(shown.length, 40);
  const y = (tokens: number) => high - (props.most > 0 ? (high * tokens) / props.most : 0);
  const targets = shown.map((e, i) => `${i === 0 ? "M" : "L"}${i * step} ${y(e.target)}H${(i + 1) * step}`).join("");
  return (
    <svg
      class="overview"
      viewBox={`0 0 ${wide} ${high + 6}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={`The size of ${props.contexts.length} contexts against their targets`}
      onClick={(e) => {
        const box = e.currentTarget.getBoundingClientRect();
        const at = Math.floor((((e.clientX - box.left) / box.width) * wide) / step);
        if (shown[at]) props.onSelect(shown[at]);
      }}
    >
      {shown.map((e, i) => (
        <g key={i}>
          <rect x={i * step} width={Math.max(step - 0.6, 0.6)} y={y(e.sent)} height={high - y(e.sent)} class={"fresh-bar" + (e.cause ? " rewritten-bar" : "")} />
          {e.kept !== undefined && <rect x={i * step} width={Math.max(step - 0.6, 0.6)} y={y(e.kept)} height={high - y(e.kept)} class="kept-bar" />}
          {e.cause && <path d={`M${i * step} ${high + 6}l${step / 2} -5l${step / 2} 5z`} class="cut-mark" />}
          {e === props.selected && <rect x={i * step} width={step} y={0} height={high + 6} class="selected-bar" />}
        </g>
      ))}
      <path d={targets} class="target-line" />
    </svg>
  );
}
