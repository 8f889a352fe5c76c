import { useEffect, useRef, useState } from "preact/hooks";
import { contexts } from "./api";
import { SessionOrder, type Session } from "./gen/contextd/v1/session_pb";
import { List } from "./list";
import { useLoad } from "./load";
import { Link, useGo } from "./navigate";
import { bytes, count, when } from "./numbers";
import { Refused, Status } from "./parts";
import type { Order, Route } from "./route";
import { line } from "./text";
import { Plain } from "./plain";

const byOrder: Record<Order, SessionOrder> = {
  id: SessionOrder.UNSPECIFIED,
  updated: SessionOrder.UPDATE_TIME,
  created: SessionOrder.CREATE_TIME,
  events: SessionOrder.HEAD_SEQ,
  calls: SessionOrder.TURNS,
  bytes: SessionOrder.LOG_BYTES,
};

const columns: { order: Order; title: string; class: string }[] = [
  { order: "id", title: "session", class: "grow" },
  { order: "events", title: "events", class: "number" },
  { order: "calls", title: "model calls", class: "number" },
  { order: "bytes", title: "size", class: "number" },
  { order: "updated", title: "last event (UTC)", class: "time" },
  { order: "created", title: "created (UTC)", class: "time" },
];

const pageSize = 200;

export function Sessions({ route }: { route: Route & { page: "sessions" } }) {
  const go = useGo();
  const [selected, select] = useState(0);
  const [query, setQuery] = useState(route.query);
  const waiting = useRef<ReturnType<typeof setTimeout> | null>(null);
  const [looks, look] = useState(0);
  useEffect(() => {
    const again = () => look((n) => n + 1);
    addEventListener("focus", again);
    return () => removeEventListener("focus", again);
  }, []);
  const key = JSON.stringify(route);
  const { value, refusal, loading } = useLoad(key + looks, (signal) =>
    contexts.listSessions({ query: route.query, order: byOrder[route.order], pageToken: route.after, pageSize }, { signal }),
  );
  useEffect(() => select(0), [key]);
  useEffect(() => setQuery(route.query), [route.query]);
  const all = value?.sessions ?? [];
  const search = (text: string) => {
    setQuery(text);
    if (waiting.current !== null) clearTimeout(waiting.current);
    waiting.current = setTimeout(() => go({ page: "sessions", query: text, order: route.order, after: "" }, "replace"), 200);
  };
  return (
    <main class="sessions">
      <div class="bar">
        <input
          type="search"
          class="search"
          placeholder="Search ids and labels  ( / )"
          aria-label="Search ids and labels"
          value={query}
          maxLength={256}
          onInput={(e) => search(e.currentTarget.value)}
        />
        <Status loading={loading}>
          {value && (all.length === 0 ? "no session" : count(all.length) + (value.nextPageToken || route.after ? " on this page" : all.length === 1 ? " session" : " sessions"))}
        </Status>
        <span class="push" />
        {route.after !== "" && <Link to={{ ...route, after: "" }}>first page</Link>}
        {value?.nextPageToken && <Link to={{ ...route, after: value.nextPageToken }}>next page</Link>}
      </div>
      <div class="columns" role="group" aria-label="Order">
        {columns.map((c) => (
          <button
            key={c.order}
            class={c.class}
            aria-pressed={route.order === c.order}
            title={c.order === "id" ? "order by name" : "the newest or largest first"}
            onClick={() => go({ ...route, order: c.order, after: "" })}
          >
            {c.title}
            {route.order === c.order ? (c.order === "id" ? " ↑" : " ↓") : ""}
          </button>
        ))}
      </div>
      <Refused refusal={refusal} />
      {value && all.length === 0 && !refusal && (
        <p class="empty">
          {route.query ? "No session has this in its id or its labels." : "There is no session yet. A session begins with the first event that is appended."}
        </p>
      )}
      <List
        label="Sessions"
        count={all.length}
        rowHeight={28}
        selected={selected}
        onSelect={select}
        onOpen={(i) => go({ page: "session", session: all[i]!.sessionId })}
        render={(i) => <Row session={all[i]!} />}
      />
    </main>
  );
}

function Row({ session: s }: { session: Session }) {
  const labels = Object.entries(s.labels);
  return (
    <>
      <span class="grow">
        <Link to={{ page: "session", session: s.sessionId }} class="id">
          {s.sessionId}
        </Link>
        {s.damaged && <strong class="tag bad">damaged</strong>}
        {s.parentSessionId && <span class="tag" title={"forked from " + s.parentSessionId}>fork</span>}
        {labels.slice(0, 4).map(([k, v]) => (
          <span key={k} class="tag" title={line(k + "=" + v)}>
            <Plain text={line(k, 40) + "=" + line(v, 40)} />
          </span>
        ))}
        {labels.length > 4 && <span class="tag">+{labels.length - 4}</span>}
      </span>
      <span class="number">{count(s.headSeq)}</span>
      <span class="number">{count(s.turns)}</span>
      <span class="number">{bytes(Number(s.logBytes))}</span>
      <span class="time">{when(s.updateTime)}</span>
      <span class="time">{when(s.createTime)}</span>
    </>
  );
}
