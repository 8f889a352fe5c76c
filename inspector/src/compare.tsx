import { useEffect, useMemo, useState } from "preact/hooks";
import { messageLine, roleName } from "./content";
import { breakOf, changesBetween, fold, type Break, type Change, type Fold } from "./difference";
import { MessageForm, type RenderedMessage } from "./gen/contextd/v1/assembly_pb";
import { List } from "./list";
import { useLoad } from "./load";
import { MessageView } from "./message";
import { Link } from "./navigate";
import { count, plural, short } from "./numbers";
import { Refused, Status } from "./parts";
import { Plain } from "./plain";
import { render } from "./rendered";
import type { Route } from "./route";

const signs: Record<Fold["kind"], string> = { same: "=", changed: "~", new: "+", gone: "−", run: "…" };

export function Compare({ route }: { route: Route & { page: "compare" } }) {
  const { session, before, after } = route;
  const { value, refusal, loading } = useLoad([session, before, after].join("\n"), async (signal) => {
    const [from, to] = await Promise.all([before, after].map((p) => render(session, p, MessageForm.BOTH, signal)));
    return { from: from!, to: to!, changes: changesBetween(from!.messages, to!.messages), broken: breakOf(from!.messages, to!.messages) };
  });
  const [whole, setWhole] = useState(false);
  const shown = useMemo<Fold[]>(() => (value === undefined ? [] : whole ? value.changes : fold(value.changes)), [value, whole]);
  const [selected, select] = useState(0);
  useEffect(() => select(Math.max(0, shown.findIndex((c) => c.kind !== "same" && c.kind !== "run"))), [shown]);
  const row = shown[selected];
  return (
    <main class="call">
      <div class="bar">
        <Link to={{ page: "call", session, projection: before, event: 0 }}>context {before}</Link>
        <Link to={{ page: "call", session, projection: after, event: 0 }}>context {after}</Link>
        {value && <Sums changes={value.changes} />}
        <label>
          <input type="checkbox" checked={whole} onChange={(e) => setWhole(e.currentTarget.checked)} /> all messages
        </label>
        <Status loading={loading && !value} />
      </div>
      <Refused refusal={refusal} />
      {value && <Broken broken={value.broken} to={value.to.messages} />}
      {value && (
        <div class="panes">
          <div class="pane aligned" data-main>
            <div class="columns">
              <span class="fate-column">change</span>
              <span class="half">{before}</span>
              <span class="tokens">tokens</span>
              <span class="half">{after}</span>
              <span class="tokens">tokens</span>
            </div>
            <List
              label="Messages of both contexts"
              count={shown.length}
              rowHeight={26}
              selected={selected}
              onSelect={select}
              render={(i) => <Line row={shown[i]!} />}
              rowClass={(i) => "change-" + shown[i]!.kind}
            />
          </div>
          <div class="pane detail" tabIndex={0} aria-label="The messages that are selected">
            {row && row.kind !== "run" && (
              <>
                {"from" in row && <Side title={before} message={row.from} session={session} />}
                {"to" in row && row.kind !== "same" && <Side title={after} message={row.to} session={session} />}
              </>
            )}
          </div>
        </div>
      )}
    </main>
  );
}

function Sums({ changes }: { changes: Change[] }) {
  const n = (kind: Change["kind"]) => changes.filter((c) => c.kind === kind).length;
  return (
    <span class="facts">
      {(["same", "changed", "new", "gone"] as const).map((k) => (
        <span key={k}>
          {count(n(k))} {k === "same" ? "the same" : k}
        </span>
      ))}
    </span>
  );
}

function Broken({ broken, to }: { broken: Break | undefined; to: RenderedMessage[] }) {
  if (broken === undefined) {
    return <p class="broken">The prefix is unchanged: the first context is a prefix of the second, to the byte.</p>;
  }
  const cause = to[broken.message]?.cause;
  return (
    <div class="broken">
      <p>
        The prefix breaks at <strong>byte {count(broken.offset)}</strong>, byte {count(broken.byte)} of message {count(broken.message + 1)}, after{" "}
        {plural(broken.tokens, "token")} that are as before{cause ? `; ${cause} rewrote it` : ""}. Bytes are those of contextd's own messages.
      </p>
      <pre>
        <span class="soft">
          <Plain text={broken.before} />
        </span>
        <del>{broken.from === "" ? "(end)" : <Plain text={broken.from} />}</del>
        {"\n"}
        <span class="soft">
          <Plain text={broken.before} />
        </span>
        <ins>{broken.to === "" ? "(end)" : <Plain text={broken.to} />}</ins>
      </pre>
    </div>
  );
}

function Line({ row }: { row: Fold }) {
  if (row.kind === "run") {
    return (
      <>
        <span class="fate-column">{signs.run}</span>
        <span class="half soft">{plural(row.messages, "message")}, the same</span>
        <span class="tokens soft">{short(row.tokens)}</span>
      </>
    );
  }
  const from = "from" in row ? row.from : undefined;
  const to = "to" in row ? row.to : undefined;
  return (
    <>
      <span class="fate-column">
        <span aria-hidden="true">{signs[row.kind]}</span> {row.kind}
      </span>
      <span class="half">{from?.message && <Plain text={messageLine(from.message)} />}</span>
      <span class="tokens soft">{from && short(from.tokens)}</span>
      <span class="half">{to?.message && (row.kind === "same" ? <span class="soft">the same</span> : <Plain text={messageLine(to.message)} />)}</span>
      <span class="tokens soft">{to && short(to.tokens)}</span>
    </>
  );
}

function Side({ title, message, session }: { title: string; message: RenderedMessage; session: string }) {
  return (
    <section>
      <h4>
        {title}, message {count(message.index + 1)}
        {message.message && ", " + roleName(message.message.role)}, {plural(message.tokens, "token")}
        {message.cause && `, changed by ${message.cause}`}
      </h4>
      {message.message && <MessageView message={message.message} session={session} />}
    </section>
  );
}
