// Functions for JSON as text, since parsing and writing it in JavaScript can change it (1.0, 1e400,
// 2^63, repeated members, members named by numbers). They require valid JSON without whitespace
// between tokens, as contextd renders it.

/** The range of a value in a text: text.slice(start, end). */
export interface Span {
  start: number;
  end: number;
}

function endOfString(text: string, at: number): number {
  for (let i = at + 1; i < text.length; i++) {
    const c = text[i];
    if (c === "\\") i++;
    else if (c === '"') return i + 1;
  }
  throw new SyntaxError("a string does not end");
}

/** The end of the value that begins at a place. */
function endOfValue(text: string, at: number): number {
  let depth = 0;
  for (let i = at; i < text.length; ) {
    const c = text[i];
    if (c === '"') {
      i = endOfString(text, i);
      if (depth === 0) return i;
      continue;
    }
    if (c === "{" || c === "[") depth++;
    else if (c === "}" || c === "]") {
      if (depth === 0) return i;
      depth--;
      if (depth === 0) return i + 1;
    } else if (c === "," && depth === 0) return i;
    i++;
  }
  return text.length;
}

/** The values of an array that begins at a place. */
export function items(text: string, at = 0): Span[] {
  const found: Span[] = [];
  if (text[at] !== "[") return found;
  for (let start = at + 1; start < text.length && text[start] !== "]"; ) {
    const end = endOfValue(text, start);
    found.push({ start, end });
    start = text[end] === "," ? end + 1 : end;
  }
  return found;
}

/** The value of an object's last member of that name; undefined if it has none. */
export function member(text: string, name: string, at = 0): Span | undefined {
  let found: Span | undefined;
  if (text[at] !== "{") return found;
  for (let i = at + 1; i < text.length && text[i] === '"'; ) {
    const colon = endOfString(text, i);
    const start = colon + 1;
    const end = endOfValue(text, start);
    if (JSON.parse(text.slice(i, colon)) === name) found = { start, end };
    i = text[end] === "," ? end + 1 : end;
  }
  return found;
}
