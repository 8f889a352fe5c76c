import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

// visible returns the first row to draw, and the one after the last.
export function visible(top: number, height: number, row: number, count: number, beyond = 8): [number, number] {
  const first = Math.max(0, Math.floor(top / row) - beyond);
  return [Math.min(first, count), Math.min(count, Math.ceil((top + height) / row) + beyond)];
}

// moved is the row that a key leads to; undefined for other keys.
export function moved(key: string, at: number, count: number, page: number): number | undefined {
  const to: Record<string, number> = {
    ArrowDown: at + 1, j: at + 1, ArrowUp: at - 1, k: at - 1,
    PageDown: at + page, PageUp: at - page, Home: 0, End: count - 1,
  };
  const next = to[key];
  return next === undefined || count === 0 ? undefined : Math.max(0, Math.min(count - 1, next));
}

type Props = {
  label: string;
  count: number;
  rowHeight: number;
  selected: number;
  onSelect: (row: number) => void;
  onOpen?: (row: number) => void;
  render: (row: number) => ComponentChildren;
  rowClass?: (row: number) => string;
};

// List draws the visible rows of a long list. All rows have the same height, so that the scroll position
// gives the visible ones.
export function List(props: Props) {
  const box = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(600);
  const id = useRef("list" + Math.random().toString(36).slice(2)).current;
  useLayoutEffect(() => {
    const element = box.current!;
    setHeight(element.clientHeight);
    if (document.activeElement === document.body) element.focus({ preventScroll: true });
    const observer = new ResizeObserver(() => setHeight(element.clientHeight));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    const element = box.current!;
    const y = props.selected * props.rowHeight;
    if (props.selected < 0) return;
    if (y < element.scrollTop) element.scrollTop = y;
    else if (y + props.rowHeight > element.scrollTop + element.clientHeight) element.scrollTop = y + props.rowHeight - element.clientHeight;
  }, [props.selected, props.count > 0]);
  const [from, to] = visible(top, height, props.rowHeight, props.count);
  const rows = [];
  for (let i = from; i < to; i++) {
    rows.push(
      <div
        key={i}
        id={`${id}-${i}`}
        role="option"
        aria-selected={i === props.selected}
        aria-posinset={i + 1}
        aria-setsize={props.count}
        class={"row " + (i === props.selected ? "selected " : "") + (props.rowClass?.(i) ?? "")}
        style={{ top: i * props.rowHeight + "px", height: props.rowHeight + "px" }}
        onClick={() => props.onSelect(i)}
        onDblClick={() => props.onOpen?.(i)}
      >
        {props.render(i)}
      </div>,
    );
  }
  return (
    <div
      ref={box}
      class="list"
      role="listbox"
      tabIndex={0}
      aria-label={props.label}
      aria-activedescendant={props.selected >= from && props.selected < to ? `${id}-${props.selected}` : undefined}
      onScroll={(e) => setTop(e.currentTarget.scrollTop)}
      onKeyDown={(e) => {
        if (e.metaKey || e.ctrlKey || e.altKey) return;
        const next = moved(e.key, props.selected, props.count, Math.max(1, Math.floor(height / props.rowHeight) - 1));
        if (next !== undefined) props.onSelect(next);
        else if (e.key === "Enter" && props.selected >= 0) props.onOpen?.(props.selected);
        else return;
        e.preventDefault();
      }}
    >
      <div class="rows" style={{ height: props.count * props.rowHeight + "px" }}>
        {rows}
      </div>
    </div>
  );
}
