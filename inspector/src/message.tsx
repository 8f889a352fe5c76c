import { useEffect, useState } from "preact/hooks";
import { contexts, refusal } from "./api";
import { mediaLine } from "./content";
import type { Block, Event, Media, Message } from "./gen/contextd/v1/event_pb";
import { count, plural } from "./numbers";
import { clip, decode, pieces } from "./text";

// step is how many characters of a text are drawn at a time: browsers are slow with megabytes in one element.
const step = 20_000;

// Text shows a text, with invisible characters by their names. Pointers in it can be opened.
export function Text({ text, session }: { text: string; session?: string }) {
  const [most, setMost] = useState(step);
  const shown = clip(text, most);
  return (
    <pre class="text" dir="auto">
      {pieces(shown).map((p, i) => {
        switch (p.kind) {
          case "hidden":
            return (
              <span key={i} class="hidden-char" title="a character that would not be seen">
                {p.text}
              </span>
            );
          case "pointer":
            return session === undefined ? p.text : <Pointer key={i} pointer={p.text} session={session} />;
          default:
            return p.text;
        }
      })}
      {shown.length < text.length && (
        <button class="more" onClick={() => setMost(most + 5 * step)}>
          {count(text.length - shown.length)} more characters
        </button>
      )}
    </pre>
  );
}

// Pointer shows, when opened, the body that is not in the context.
export function Pointer({ pointer, session }: { pointer: string; session: string }) {
  const [state, set] = useState<{ open: boolean; block?: Block; event?: Event; error?: string }>({ open: false });
  const toggle = () => {
    set({ ...state, open: !state.open });
    if (state.open || state.block || state.event) return;
    contexts.resolvePointer({ sessionId: session, pointer }).then(
      (r) => set({ open: true, ...(r.block ? { block: r.block } : { event: r.event! }) }),
      (e) => set({ open: true, error: refusal(e).sentence }),
    );
  };
  return (
    <>
      <button class="pointer" aria-expanded={state.open} onClick={toggle} title="show the whole body">
        {pointer}
      </button>
      {state.open && (
        <span class="body">
          {state.error ?? (state.block ? <BlockView block={state.block} /> : state.event ? <EventView event={state.event} /> : "loading…")}
        </span>
      )}
    </>
  );
}

export function EventView({ event }: { event: Event }) {
  const kind = event.kind;
  switch (kind.case) {
    case "message":
      return <MessageView message={kind.value} />;
    case "reminder":
      return <Text text={kind.value.body} />;
    case "compaction":
      return (
        <>
          <Text text={kind.value.summary || "(no summary)"} />
          {kind.value.nativeJson.length > 0 && <Text text={decode(kind.value.nativeJson)} />}
        </>
      );
    case "custom":
      return <Text text={kind.value.type + "\n" + decode(kind.value.json)} />;
    default:
      return null;
  }
}

export function MessageView({ message, session }: { message: Message; session?: string }) {
  return (
    <>
      {message.blocks.map((b, i) => (
        <BlockView key={i} block={b} session={session} />
      ))}
    </>
  );
}

function BlockView({ block, session }: { block: Block; session?: string }) {
  const b = block.kind;
  switch (b.case) {
    case "text":
      return <Text text={b.value.text} session={session} />;
    case "thinking":
      return (
        <div class="block thinking">
          <h4>thinking{b.value.signature ? ", signed" : ""}</h4>
          <Text text={b.value.text || "(sealed by its provider)"} session={session} />
        </div>
      );
    case "toolCall":
      return (
        <div class="block">
          <h4>
            call of {b.value.name} <code>{b.value.callId}</code>
          </h4>
          <Text text={decode(b.value.argumentsJson)} session={session} />
        </div>
      );
    case "toolResult":
      return (
        <div class={"block" + (b.value.isError ? " error" : "")}>
          <h4>
            {b.value.isError ? "failed result" : "result"} of <code>{b.value.callId}</code>
          </h4>
          {b.value.content.length === 0 && <p class="soft">nothing</p>}
          {b.value.content.map((c, i) => (
            <BlockView key={i} block={c} session={session} />
          ))}
        </div>
      );
    case "media":
      return <Picture media={b.value} />;
    case "provider":
      return (
        <div class="block">
          <h4>block of {b.value.provider}</h4>
          <Text text={decode(b.value.json)} session={session} />
        </div>
      );
    default:
      return null;
  }
}

// Image types that are shown: in these a browser neither runs nor loads anything.
const drawn = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);
const largest = 20 << 20;

function Picture({ media }: { media: Media }) {
  const [url, setURL] = useState<string>();
  const draw = drawn.has(media.mimeType) && media.data.length > 0 && media.data.length <= largest;
  useEffect(() => {
    if (!draw) return;
    const made = URL.createObjectURL(new Blob([media.data as Uint8Array<ArrayBuffer>], { type: media.mimeType }));
    setURL(made);
    return () => URL.revokeObjectURL(made);
  }, [media, draw]);
  return (
    <figure class="block">
      {url && <img src={url} alt={`a picture of ${plural(media.data.length, "byte")}`} />}
      <figcaption>
        {mediaLine(media.mimeType, media.data.length, media.uri)}
        {media.uri && ", which is not loaded"}
      </figcaption>
    </figure>
  );
}
