// Messages may contain anything. Characters that are invisible, or that change how the rest of the page is
// read, are shown by their names.

export type Piece = { kind: "plain" | "hidden" | "pointer"; text: string };

// Control characters and lone surrogates; marks of direction; joiners and other characters without width;
// tags. Line feeds and tabs are kept.
const hidden =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffc]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]|\udb40[\udc00-\udfff]/g;

const pointers = /\bctx:\d{1,20}\.\d{1,10}\b/g;

// pieces splits a text into plain parts, hidden characters, and pointers.
export function pieces(text: string): Piece[] {
  const out: Piece[] = [];
  split(text, hidden, (part, matched) => {
    if (matched) {
      out.push({ kind: "hidden", text: codes(part) });
      return;
    }
    split(part, pointers, (plain, pointer) => out.push({ kind: pointer ? "pointer" : "plain", text: plain }));
  });
  return out;
}

function split(text: string, by: RegExp, each: (part: string, matched: boolean) => void) {
  let from = 0;
  for (const match of text.matchAll(by)) {
    if (match.index > from) each(text.slice(from, match.index), false);
    each(match[0], true);
    from = match.index + match[0].length;
  }
  if (from < text.length) each(text.slice(from), false);
}

function codes(text: string): string {
  return Array.from(text, (c) => "U+" + c.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")).join(" ");
}

// clip is the beginning of a text: at most so many UTF-16 units, without splitting a character.
export function clip(text: string, most: number): string {
  if (text.length <= most) return text;
  const last = text.charCodeAt(most - 1);
  return text.slice(0, last >= 0xd800 && last < 0xdc00 ? most - 1 : most);
}

// line is a text on one line, for lists.
export function line(text: string, most = 240): string {
  return clip(text.slice(0, 4 * most).replace(/\s+/g, " ").trim(), most);
}

const decoder = new TextDecoder();

export function decode(bytes: Uint8Array): string {
  return decoder.decode(bytes);
}
