import { describe, expect, it } from "vitest";
import { moved, visible } from "../src/list";
import { bytes, percent, plural, short } from "../src/numbers";

describe("numbers", () => {
  it.each([
    [0, "0"], [999, "999"], [1000, "1.0k"], [99_940, "99.9k"], [99_960, "100k"], [999_499, "999k"], [999_500, "1.0M"], [-1500, "-1.5k"],
  ])("%d is %s", (n, want) => expect(short(n)).toBe(want));
  it.each([[0, "0 B"], [1023, "1023 B"], [1536, "1.5 KiB"], [50 << 20, "50 MiB"]])("%d is %s", (n, want) => expect(bytes(n)).toBe(want));
  it("says 100% only of all", () => {
    expect(percent(999, 1000)).toBe("99%");
    expect(percent(1, 0)).toBe("-");
  });
  it("counts", () => expect([plural(1, "event"), plural(2000, "event")]).toEqual(["1 event", "2,000 events"]));
});

describe("a list", () => {
  it("draws what can be seen, and a little more", () => {
    expect(visible(0, 100, 10, 1000, 2)).toEqual([0, 12]);
    expect(visible(5000, 100, 10, 1000, 2)).toEqual([498, 512]);
    expect(visible(99_999, 100, 10, 5, 2)).toEqual([5, 5]);
  });
  it("moves by keys", () => {
    expect(moved("j", 0, 3, 10)).toBe(1);
    expect(moved("End", 0, 3, 10)).toBe(2);
    expect(moved("PageUp", 2, 3, 10)).toBe(0);
    expect(moved("x", 0, 3, 10)).toBeUndefined();
    expect(moved("j", 0, 0, 10)).toBeUndefined();
  });
});
