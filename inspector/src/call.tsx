import { useEffect, useLayoutEffect, useMemo, useReducer, useRef, useState } from "preact/hooks";
import { align, why, type AlignedRow, type Fate } from "./align";
import { compactions, refusal, type Refusal } from "./api";
import { Ask } from "./ask";
import { messageLine, roleName, summaryOf, who } from "./content";
import { Window } from "./events";
import { MessageForm, type RenderedMessage } from "./gen/contextd/v1/assembly_pb";
import type { Summary } from "./gen/contextd/v1/compaction_pb";
import type { Projection } from "./gen/contextd/v1/projection_pb";
import { List } from "./list";
import { useLoad } from "./load";
import { EventView, MessageView } from "./message";
import { Link, useGo } from "./navigate";
import { count, percent, plural, short, when } from "./numbers";
import { useNeighbours } from "./neighbours";
import { Refused, Status } from "./parts";
import { Plain } from "./plain";
import { render } from "./rendered";
import type { Route } from "./route";

const fates: Fate[] = ["kept", "stubbed", "clipped", "omitted", "redacted", "summarised", "dropped", "written", "unshown"];

// A sign for each fate, for readers who cannot distinguish the colours.
const signs: Record<Fate, string> = {
  kept: "=", stubbed: "→", clipped: "✂", omitted: "∅", redacted: "→", summarised: "Σ", dropped: "×", written: "+", unshown: "·",
};

// The summary of an id, which is searched page by page.
async function summary(session: string, id: string, signal: AbortSignal): Promise<Summary | undefined> {
  for (let pageToken = ""; id !== ""; ) {
    const page = await compactions.listSummaries({ sessionId: session, pageToken }, { signal });
    const found = page.summaries.find((s) => s.summaryId === id);
    if (found || page.nextPageToken === "") return found;
    pageToken = page.nextPageToken;
  }
  return undefined;
}

export function Call({ route }: { route: Route & { page: "call" } }) {
  const go = useGo();
  const { session, projection } = route;
  const { value, refusal: refused, loading } = useLoad(session + "\n" + projection, async (signal) => {
    const rendered = await render(session, projection, MessageForm.VALUE, signal);
    const recorded = rendered.replay.recorded!;
    return { ...rendered, recorded, alignment: align(recorded, rendered.messages, await summary(session, recorded.summaryId, signal)) };
  });
  const neighbours = useNeighbours(session, projection);
  const [hidden, setHidden] = useState<ReadonlySet<Fate>>(new Set<Fate>(["unshown"]));
  const [, redraw] = useReducer<number, void>((n) => n + 1, 0);
  const [failure, setFailure] = useState<Refusal>();
  const head = Number(value?.recorded.asOfSeq ?? 0);
  const log = useMemo(() => new Window(session, head, () => redraw(), (e) => setFailure(refusal(e))), [session, head]);
  useEffect(() => () => log.close(), [log]);
  const shown = useMemo(() => value?.alignment.rows.filter((r) => !hidden.has(r.fate)) ?? [], [value, hidden]);
  const [selected, select] = useState(0);
  const settled = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const choose = (i: number) => {
    select(i);
    // A held key moves faster than browsers allow the address to change.
    clearTimeout(settled.current);
    settled.current = setTimeout(() => go({ ...route, event: shown[i]?.seq ?? 0 }, "replace"), 200);
  };
  useEffect(() => () => clearTimeout(settled.current), []);
  const goTo = (seq: number) => {
    let at = shown.findIndex((r) => r.seq === seq);
    if (at < 0 && value) {
      setHidden(new Set());
      at = value.alignment.rows.findIndex((r) => r.seq === seq);
    }
    if (at < 0) return;
    select(at);
    go({ ...route, event: seq }, "replace");
  };
  useEffect(() => {
    if (value === undefined) return;
    const at = route.event > 0 ? shown.findIndex((r) => r.seq === route.event) : -1;
    select(at >= 0 ? at : Math.max(0, shown.length - 1));
  }, [value]);
  // Before it is painted, so that a key counts as soon as what it does is shown.
  useLayoutEffect(() => {
    const keys = (e: KeyboardEvent) => {
      if (e.metaKey || e.ctrlKey || e.altKey || (e.target as HTMLElement).matches("input")) return;
      const to = e.key === "[" ? neighbours.before : e.key === "]" ? neighbours.after : undefined;
      if (to !== undefined) go({ ...route, projection: to });
      else if (e.key === "c" && neighbours.before !== undefined) go({ page: "compare", session, before: neighbours.before, after: projection });
    };
    addEventListener("keydown", keys);
    return () => removeEventListener("keydown", keys);
  }, [neighbours, route]);
  const row = shown[selected];
  return (
    <main class="call">
      <div class="bar">
        {neighbours.before !== undefined && (
          <Link to={{ ...route, projection: neighbours.before, event: 0 }} title="the context before ( [ )">
            ← before
          </Link>
        )}
        {neighbours.after !== undefined && (
          <Link to={{ ...route, projection: neighbours.after, event: 0 }} title="the context after ( ] )">
            after →
          </Link>
        )}
        {neighbours.before !== undefined && (
          <Link to={{ page: "compare", session, before: neighbours.before, after: projection }} title="what changed since the context before ( c )">
            what changed
          </Link>
        )}
        {value && <Facts p={value.recorded} />}
        <span class="push" />
        <Status loading={loading && !value} />
        <Ask session={session} projection={projection} onGo={goTo} />
      </div>
      <Refused refusal={refused ?? failure} />
      {value && !value.replay.same && (
        <p class="refused" role="alert">
          This is not what was sent: the context was rebuilt otherwise than it is recorded ({value.replay.difference}).
        </p>
      )}
      {value && (
        <>
          <div class="filters" role="group" aria-label="What is listed">
            {fates
              .filter((f) => value.alignment.counts.has(f))
              .map((f) => (
                <button
                  key={f}
                  aria-pressed={!hidden.has(f)}
                  class={"fate " + f}
                  onClick={() => {
                    const next = new Set(hidden);
                    if (!next.delete(f)) next.add(f);
                    setHidden(next);
                    select(0);
                  }}
                >
                  <span aria-hidden="true">{signs[f]}</span> {f} {count(value.alignment.counts.get(f)!)}
                </button>
              ))}
          </div>
          <div class="panes">
            <div class="pane aligned" data-main>
              <div class="columns">
                <span class="seq">event</span>
                <span class="fate-column">in the context</span>
                <span class="who">who</span>
                <span class="half">the log</span>
                <span class="tokens">tokens</span>
                <span class="half">what the model saw</span>
                <span class="tokens">tokens</span>
              </div>
              <List
                label="Events and what the model saw of them"
                count={shown.length}
                rowHeight={26}
                selected={selected}
                onSelect={choose}
                render={(i) => <Aligned row={shown[i]!} log={log} messages={value.messages} />}
                rowClass={(i) => "fate-" + shown[i]!.fate}
              />
            </div>
            <div class="pane detail" tabIndex={0} aria-label="The event that is selected">
              {row && <Detail row={row} log={log} messages={value.messages} p={value.recorded} why={why(row, value.alignment, value.recorded)} session={session} />}
            </div>
          </div>
        </>
      )}
    </main>
  );
}

function Facts({ p }: { p: Projection }) {
  const b = p.budget;
  return (
    <span class="facts">
      <span>as of event {count(p.asOfSeq)}</span>
      <span>
        {count(b?.projectedTokens ?? 0n)} of {count(b?.targetTokens ?? 0n)} tokens
      </span>
      {p.cache && b && <span>{percent(Number(p.cache.stableTokens), Number(b.projectedTokens))} as before</span>}
      <span>projection policy {p.policy}</span>
      <span>{when(p.time)} UTC</span>
    </span>
  );
}

function Aligned({ row, log, messages }: { row: AlignedRow; log: Window; messages: RenderedMessage[] }) {
  const logged = row.seq > 0 ? log.get(row.seq) : undefined;
  const message = row.message >= 0 ? messages[row.message] : undefined;
  return (
    <>
      <span class="seq">{row.seq > 0 ? count(row.seq) : ""}</span>
      <span class="fate-column">
        <span class={"fate " + row.fate}>
          <span aria-hidden="true">{signs[row.fate]}</span> {row.fate}
        </span>
      </span>
      <span class="who">{logged ? who(logged.event) : row.seq === 0 ? "contextd" : ""}</span>
      <span class="half">{logged ? <Plain text={summaryOf(logged.event)} /> : row.seq > 0 ? "…" : ""}</span>
      <span class="tokens soft">{logged && logged.tokens > 0 ? short(logged.tokens) : ""}</span>
      <span class="half">{message?.message && (row.again ? <span class="soft">″ in the message above</span> : row.fate === "kept" ? <span class="soft">the same</span> : <Plain text={messageLine(message.message)} />)}</span>
      <span class="tokens soft">{message && !row.again ? short(message.tokens) : ""}</span>
    </>
  );
}

function Detail(props: { row: AlignedRow; log: Window; messages: RenderedMessage[]; p: Projection; why: string; session: string }) {
  const { row, log, messages } = props;
  const logged = row.seq > 0 ? log.get(row.seq) : undefined;
  const message = row.message >= 0 ? messages[row.message] : undefined;
  return (
    <>
      <h3>
        {row.seq > 0 ? "Event " + count(row.seq) : "Written by contextd"}{" "}
        <span class={"fate " + row.fate}>
          <span aria-hidden="true">{signs[row.fate]}</span> {row.fate}
        </span>
      </h3>
      {props.why && (
        <p class="why">
          <Plain text={props.why} />
        </p>
      )}
      {message?.message && (
        <section>
          <h4>
            What the model saw: message {count(message.index + 1)}, {roleName(message.message.role)}, {plural(message.tokens, "token")}
            {message.cause && `, changed by ${message.cause}`}
          </h4>
          <MessageView message={message.message} session={props.session} />
        </section>
      )}
      {row.seq > 0 && row.fate !== "kept" && (
        <section>
          <h4>
            In the log{logged ? `: ${who(logged.event)}, ${when(logged.event.time)} UTC` + (logged.tokens > 0 ? `, ${plural(logged.tokens, "token")}` : "") : ""}
          </h4>
          {logged ? <EventView event={logged.event} /> : <p class="status">loading…</p>}
        </section>
      )}
      {row.seq > 0 && logged && Object.keys(logged.event.labels).length > 0 && (
        <section>
          <h4>Labels</h4>
          <dl class="labels">
            {Object.entries(logged.event.labels).map(([k, v]) => (
              <div key={k}>
                <dt>
                  <Plain text={k} />
                </dt>
                <dd>
                  <Plain text={v} />
                </dd>
              </div>
            ))}
          </dl>
        </section>
      )}
    </>
  );
}
