import { pieces } from "./text";

// Plain is a text of which everything can be seen.
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
