import { describe, expect, it } from "vitest";
import { clip, line, pieces } from "../src/text";

describe("pieces", () => {
  it("shows what could not be seen", () => {
    expect(pieces("a\u202eb\u200bc\u0007\ud800d")).toEqual([
      { kind: "plain", text: "a" },
      { kind: "hidden", text: "U+202E" },
      { kind: "plain", text: "b" },
      { kind: "hidden", text: "U+200B" },
      { kind: "plain", text: "c" },
      { kind: "hidden", text: "U+0007" },
      { kind: "hidden", text: "U+D800" },
      { kind: "plain", text: "d" },
    ]);
  });

  it("shows tags, which a model reads and nobody sees", () => {
    expect(pieces("\u{e0041}").map((p) => p.text)).toEqual(["U+E0041"]);
  });

  it.each(["line\n\tnext", "äöü 漢字 😀 עברית", "<script>alert(1)</script>"])("leaves %j as it is", (text) => {
    expect(pieces(text)).toEqual([{ kind: "plain", text }]);
  });

  it("finds pointers", () => {
    expect(pieces("see ctx:12.0, ctx:3.14.").filter((p) => p.kind === "pointer")).toEqual([
      { kind: "pointer", text: "ctx:12.0" },
      { kind: "pointer", text: "ctx:3.14" },
    ]);
    expect(pieces("xctx:1.0 ctx:1").some((p) => p.kind === "pointer")).toBe(false);
  });

  it("loses nothing of random texts", () => {
    const letters = ["a", " ", "\n", "ctx:1.2", "\u202e", "\ud83d\ude00", "\ud83d", "\ude00", "\u0000"];
    let state = 7;
    for (let n = 0; n < 500; n++) {
      let text = "";
      for (let i = 0; i < n % 17; i++) {
        state = (state * 1103515245 + 12345) % 2147483648;
        text += letters[state % letters.length];
      }
      const back = pieces(text)
        .map((p) => (p.kind === "hidden" ? p.text.split(" ").map((u) => String.fromCodePoint(parseInt(u.slice(2), 16))).join("") : p.text))
        .join("");
      expect(back).toBe(text);
    }
  });
});

describe("clip", () => {
  it("cuts between characters", () => {
    expect(clip("a😀b", 2)).toBe("a");
    expect(clip("a😀b", 3)).toBe("a😀");
    expect(clip("ab", 5)).toBe("ab");
  });
  it("makes one line", () => {
    expect(line("  a\n\n b\t" + "x".repeat(9999), 6)).toBe("a b xx");
  });
});
