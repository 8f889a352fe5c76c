import { useMemo, useState } from "preact/hooks";
import { Bar, Legend } from "./bar";
import { BudgetState } from "./gen/contextd/v1/budget_pb";
import { useHistory } from "./history";
import { List } from "./list";
import { Link, useGo } from "./navigate";
import { count, percent, plural, short, when } from "./numbers";
import { Overview } from "./overview";
import { Refused, Status } from "./parts";
import { Plain } from "./plain";
import { cached, counted, entries, rows, type Entry, type Row } from "./timeline";

const states: Record<BudgetState, string> = {
  [BudgetState.UNSPECIFIED]: "",
  [BudgetState.GREEN]: "green",
  [BudgetState.YELLOW]: "yellow",
  [BudgetState.RED]: "red",
};

const causes: Record<string, string> = {
  full: "it would have exceeded the target",
  cold: "the provider's cache had expired anyway",
  batch: "enough had gathered to pay",
};

export function Session({ session }: { session: string }) {
  const go = useGo();
  const h = useHistory(session);
  const contexts = useMemo(() => entries(h.projections, h.calls), [h.projections, h.calls]);
  const all = useMemo(() => rows(contexts, h.events), [contexts, h.events]);
  const [selected, select] = useState(0);
  const most = useMemo(() => contexts.reduce((n, e) => Math.max(n, e.target, e.sent, counted(e)), 0) * 1.02, [contexts]);
  const open = (row: Row | undefined) =>
    row?.kind === "context" && go({ page: "call", session, projection: row.projection.projectionId, event: 0 });
  return (
    <main class="session">
      <div class="bar">
        <Facts contexts={contexts} events={h.session ? Number(h.session.headSeq) : undefined} />
        <span class="push" />
        <Status loading={!h.complete && !h.refusal}>{h.complete ? (h.following ? "live" : "not live") : undefined}</Status>
      </div>
      <Refused refusal={h.refusal} />
      {h.complete && contexts.length === 0 && (
        <p class="empty">No context of this session is recorded. One is with each AssembleContext that is no preview.</p>
      )}
      {contexts.length > 0 && (
        <>
          <Overview contexts={contexts} most={most} selected={all[selected]} onSelect={(e) => select(all.indexOf(e))} />
          <div class="columns">
            <span class="ordinal">call</span>
            <span class="seq">to event</span>
            <span class="clock">UTC</span>
            <Legend />
            <span class="tokens">sent</span>
            <span class="tokens">whole log</span>
            <span class="share">prefix</span>
            <span class="what">what changed</span>
          </div>
        </>
      )}
      <List
        label="Contexts"
        count={all.length}
        rowHeight={30}
        selected={selected}
        onSelect={select}
        onOpen={(i) => open(all[i])}
        render={(i) => <TimelineRow row={all[i]!} session={session} most={most} />}
        rowClass={(i) => (all[i]!.kind === "mark" ? "mark" : "")}
      />
    </main>
  );
}

function Facts({ contexts, events }: { contexts: Entry[]; events: number | undefined }) {
  const rewritten = contexts.filter((e) => e.cause !== "").length;
  const last = contexts.at(-1);
  return (
    <span class="facts">
      {events !== undefined && <span>{plural(events, "event")}</span>}
      {contexts.length > 0 && <span>{plural(contexts.length, "context")}</span>}
      {contexts.length > 0 && <span>{rewritten === 0 ? "prefix never rewritten" : "prefix rewritten " + plural(rewritten, "time")}</span>}
      {last && (
        <span>
          newest {short(last.sent)} of {short(last.target)} tokens, projection policy {last.projection.policy}
        </span>
      )}
    </span>
  );
}

function TimelineRow({ row, session, most }: { row: Row; session: string; most: number }) {
  if (row.kind === "mark") {
    return (
      <>
        <span class="ordinal" aria-hidden="true">
          ·
        </span>
        <span class="seq" />
        <span class="clock">{when(row.event.time).slice(11)}</span>
        <span class="grow">
          <Plain text={row.text} />
        </span>
      </>
    );
  }
  const e = row;
  const p = e.projection;
  const real = counted(e);
  return (
    <>
      <span class="ordinal">
        <Link to={{ page: "call", session, projection: p.projectionId, event: 0 }} title={"context " + p.projectionId}>
          {e.number}
        </Link>
      </span>
      <span class="seq">{count(p.asOfSeq)}</span>
      <span class="clock" title={when(p.time)}>
        {when(p.time).slice(11)}
      </span>
      <Bar entry={e} most={most} />
      <span class={"tokens state " + states[e.state]} title={real > 0 ? `the provider counted ${count(real)}` : `of ${count(e.target)}: ${states[e.state]}`}>
        {short(e.sent)}
      </span>
      <span class="tokens soft">{e.raw > 0 ? short(e.raw) : "-"}</span>
      <span class="share">{e.kept === undefined ? "new" : percent(e.kept, e.sent)}</span>
      <span class="what">
        {e.cause && (
          <strong class={"tag " + e.cause} title={causes[e.cause]}>
            {e.cause}
          </strong>
        )}
        {e.calls.some((c) => c.rejectedOverBudget) && <strong class="tag bad">refused as too long</strong>}
        <Plain text={e.changes.join(", ")} />
        {real > 0 && (
          <span class="soft">
            {" "}
            provider {short(real)}
            {cached(e) > 0 && `, ${short(cached(e))} cached`}
          </span>
        )}
      </span>
    </>
  );
}
