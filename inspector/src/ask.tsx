import { useState } from "preact/hooks";
import { contexts, refusal, type Refusal } from "./api";
import type { ExplainCallResponse } from "./gen/contextd/v1/tokens_pb";
import { plural } from "./numbers";
import { Refused } from "./parts";

// Ask shows whether the model saw a text in a context, and if not, why.
export function Ask({ session, projection, onGo }: { session: string; projection: string; onGo: (seq: number) => void }) {
  const [text, setText] = useState("");
  const [state, set] = useState<{ asked: string; answer?: ExplainCallResponse; refusal?: Refusal } | undefined>();
  const ask = (e: Event) => {
    e.preventDefault();
    if (text === "") return set(undefined);
    set({ asked: text });
    contexts.explainCall({ sessionId: session, projectionId: projection, text }).then(
      (answer) => set({ asked: text, answer }),
      (error) => set({ asked: text, refusal: refusal(error) }),
    );
  };
  return (
    <section class="ask" onKeyDown={(e) => e.key === "Escape" && set(undefined)}>
      <form onSubmit={ask} role="search">
        <input
          class="search"
          type="search"
          maxLength={4096}
          placeholder="Did the model see…  ( / )"
          aria-label="Did the model see this text? A text as it was, or a pointer such as ctx:12.0"
          value={text}
          onInput={(e) => setText(e.currentTarget.value)}
        />
        <button type="submit">Ask</button>
      </form>
      <Refused refusal={state?.refusal} />
      {state && !state.answer && !state.refusal && <p class="status">looking…</p>}
      {state?.answer && (
        <div class="answer" role="status">
          <p>
            <strong class={"verdict " + (state.answer.seen ? "yes" : "no")}>{state.answer.seen ? "Yes, it was seen." : "No, it was not seen."}</strong>{" "}
            {state.answer.sightings.length === 0
              ? "It is nowhere in the log up to here, nor in what contextd wrote."
              : plural(state.answer.sightings.length, "place") + (state.answer.sightings.length === 100 ? " or more:" : ":")}
          </p>
          <ul>
            {state.answer.sightings.map((s, i) => (
              <li key={i}>
                {s.seq > 0n ? (
                  <button class="link" onClick={() => onGo(Number(s.seq))}>
                    event {String(s.seq)}
                  </button>
                ) : (
                  "written by contextd"
                )}
                : {s.shown}
                {s.seen ? "" : ", not readable there"}
                {s.reason ? " (" + s.reason + ")" : ""}
              </li>
            ))}
          </ul>
          <button class="quiet" onClick={() => set(undefined)}>
            close
          </button>
        </div>
      )}
    </section>
  );
}
