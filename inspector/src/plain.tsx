import { pieces } from "./text";

// Plain shows a text with invisible characters made visible.
export function Plain({ text }: { text: string }) {
  return (
    <>
      {pieces(text).map((p, i) =>
        p.kind === "hidden" ? (
          <span key={i} class="hidden-char" title="a character that would not be seen">
            {p.text}
          </span>
        ) : (
          p.text
        ),
      )}
    </>
  );
}
