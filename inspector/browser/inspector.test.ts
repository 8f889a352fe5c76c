import { existsSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { looksLike } from "./goldens";
import { at, contextd, folder, inspect, launch, open, Serving, type Opened } from "./program";
import { call, event, hostile, long, result, text } from "./sessions";

let browser: Browser;
let demo: string; // the data directory of the demo's session, and others
// The demo's contexts as the command line prints them.
let listed: { projection_id: string; budget: { projected_tokens: string }; cache?: { broken_by?: string } }[];

beforeAll(async () => {
  browser = await launch();
  const kept = /(\S+\/data)\b/.exec(contextd(["demo", "--keep", "--delay", "0s"]));
  if (kept === null) throw new Error("the demo did not say where its data is");
  demo = kept[1]!;
  listed = contextd(["projections", "list", "demo", "--embedded", demo, "--json"])
    .trim()
    .split("\n")
    .map((l) => JSON.parse(l));
  contextd(["append", "hostile", "--embedded", demo], hostile);
  contextd(["assemble", "hostile", "--embedded", demo, "--max-tokens", "16k"]);
});
afterAll(async () => {
  await browser?.close();
  if (demo) rmSync(dirname(demo), { recursive: true });
});

// shown opens a page of the inspector on a data directory, and closes it after the test.
async function shown(path: string, test: (opened: Opened, url: string) => Promise<void>, look: { dark?: boolean; width?: number } = {}) {
  const serving = await inspect("--embedded", demo);
  try {
    const opened = await open(browser, at(serving.url, path), look);
    await test(opened, serving.url);
    expect(opened.errors).toEqual([]);
    await opened.close();
  } finally {
    await serving.stop();
  }
}

describe("sessions", () => {
  it("are listed, searched and opened by keys", () =>
    shown("/", async ({ page }) => {
      await page.getByRole("option").nth(1).waitFor();
      await looksLike(page, "sessions");
      await page.keyboard.press("/");
      await page.keyboard.type("DEM");
      await page.waitForURL(/query=DEM/);
      await expect.poll(() => page.getByRole("option").count()).toBe(1);
      await page.keyboard.press("Escape");
      await page.keyboard.press("Enter");
      await page.waitForURL(/\/session\/demo$/);
    }));

  it("say so where there is none", () =>
    shown("/?query=nothing-like-this", async ({ page }) => {
      await page.getByText("No session has this in its id or its labels.").waitFor();
    }));
});

describe("a session's time line", () => {
  for (const dark of [false, true]) {
    it("shows contexts against their budget, " + (dark ? "dark" : "light"), () =>
      shown(
        "/session/demo",
        async ({ page }) => {
          await page.getByText("summary ready of events").first().waitFor();
          await page.keyboard.press("End");
          await page.keyboard.press("Home");
          for (let i = 0; i < 44; i++) await page.keyboard.press("j");
          await looksLike(page, dark ? "session-dark" : "session");
          const rewritten = listed.filter((p) => p.cache?.broken_by).length;
          await expect.poll(() => page.getByText(`prefix rewritten ${rewritten} times`).count()).toBe(1);
        },
        { dark },
      ),
    );
  }

  it("has the numbers that the command line prints", () =>
    shown("/session/demo", async ({ page }) => {
      await page.getByText("summary ready of events").first().waitFor();
      await page.getByText(`${listed.length} contexts`).waitFor();
      const first = await page.getByRole("img", { name: /of 14,400 tokens/ }).first().getAttribute("aria-label");
      expect(first).toContain(`${Number(listed[0]!.budget.projected_tokens).toLocaleString("en")} of 14,400 tokens`);
    }));
});

describe("a context", () => {
  const newest = () => listed.at(-1)!.projection_id;

  it("is beside the log, and a stub leads to its body", () =>
    shown("/session/demo/call/" + newest(), async ({ page }) => {
      await page.getByRole("option", { selected: true }).waitFor();
      await looksLike(page, "call");
      await page.getByRole("option", { name: /clipped|stubbed/ }).first().click();
      const pointer = page.locator(".detail .pointer").first();
      await pointer.click();
      await page.locator(".detail .body pre").first().waitFor();
      await looksLike(page, "stub");
    }));

  it("answers whether a text was seen", () =>
    shown("/session/demo/call/" + newest(), async ({ page }) => {
      await page.locator(".row.selected").waitFor();
      await page.keyboard.press("/");
      await page.keyboard.type("You are a software engineer");
      await page.keyboard.press("Enter");
      await page.getByText("Yes, it was seen.").waitFor();
      await page.locator("input.search").fill("no text like this anywhere");
      await page.keyboard.press("Enter");
      await page.getByText("No, it was not seen.").waitFor();
      await page.keyboard.press("Escape");
      await expect.poll(() => page.getByText("No, it was not seen.").count()).toBe(0);
    }));

  it("is reached by a link alone, and left by keys", () =>
    shown(`/session/demo/call/${newest()}?event=74`, async ({ page }) => {
      await expect.poll(() => page.locator(".row.selected .seq").textContent()).toBe("74");
      // The key comes in the very task that shows the link for it.
      const changed = page.getByTitle("what changed since the context before");
      await changed.evaluate(({ title, href }: HTMLAnchorElement) => {
        new MutationObserver((_, self) => {
          const next = document.querySelector<HTMLAnchorElement>(`a[title="${title}"]`);
          if (next === null || next.href === href) return;
          self.disconnect();
          document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "c", bubbles: true }));
        }).observe(document.body, { subtree: true, childList: true, attributes: true });
      });
      await page.keyboard.press("[");
      await expect.poll(() => page.url()).toMatch(/compare/);
      expect(page.url()).not.toContain(newest());
      await page.keyboard.press("u");
      await expect.poll(() => page.url()).toMatch(/\/session\/demo$/);
      await page.goBack();
      await expect.poll(() => page.url()).toMatch(/compare/);
    }));

  it("that is not there is refused in a sentence", () =>
    shown("/session/demo/call/p9999-0001", async ({ page, errors }) => {
      await page.getByText('Projection "p9999-0001" does not exist.').waitFor();
      errors.splice(0, errors.length, ...errors.filter((e) => !e.includes("404")));
    }));
});

describe("two contexts", () => {
  it("are compared, with the byte where the prefix broke", () =>
    shown("/session/demo", async ({ page }) => {
      const broken = listed.findLastIndex((p) => p.cache?.broken_by);
      await page.goto(new URL(`/session/demo/compare/${listed[broken - 1]!.projection_id}/${listed[broken]!.projection_id}`, page.url()).toString());
      await page.getByText("The prefix breaks at").waitFor();
      await looksLike(page, "compare");
    }));
});

describe("hostile content", () => {
  it("is text, whatever it is", () =>
    shown("/session/hostile", async ({ page, errors }) => {
      await page.getByRole("option").first().waitFor();
      await page.keyboard.press("Enter");
      await page.waitForURL(/\/call\//);
      const rows = page.getByRole("option");
      await rows.first().waitFor();
      for (let i = 0; i < (await rows.count()); i++) {
        await rows.nth(i).click();
        await page.locator(".detail h3").waitFor();
      }
      await rows.nth(1).click();
      await looksLike(page, "hostile-markup");
      await rows.nth(4).click();
      await page.getByText("U+0007").first().waitFor();
      await looksLike(page, "hostile-bidi");
      await rows.nth(5).click();
      await page.locator("img").first().waitFor();
      expect(await page.locator("img").count()).toBe(1); // the PNG, and not the SVG
      await page.getByText("image/svg+xml").first().waitFor();
      expect(await page.title()).not.toContain("run");
      expect(errors).toEqual([]);
    }));
});

describe("a context of 99,999 events", () => {
  it("is scrolled through", async () => {
    const dir = folder();
    const lines = [event("user", text("Count."))];
    for (let n = 1; n < 100_000; n += 2) {
      lines.push(event("assistant", call("c", "next", { n })), event("tool", result("c", text("number " + n))));
    }
    contextd(["append", "huge", "--embedded", dir.path], lines.slice(0, 99_999).join("\n"));
    contextd(["assemble", "huge", "--embedded", dir.path, "--max-tokens", "32k"]);
    const serving = await inspect("--embedded", dir.path);
    try {
      const { page, errors, close } = await open(browser, at(serving.url, "/session/huge"));
      await page.getByRole("option").first().waitFor();
      await page.keyboard.press("Enter");
      await page.locator(".row.selected").waitFor();
      const row = page.locator(".row.selected");
      for (const [key, seq] of [["Home", /^1$/], ["End", /^99,999$/], ["PageUp", /^99,9/]] as const) {
        const start = performance.now();
        await page.keyboard.press(key);
        await expect.poll(() => row.locator(".seq").textContent()).toMatch(seq);
        await expect.poll(() => row.locator(".half").first().textContent()).not.toBe("…");
        console.log("99,999 events,", key, Math.round(performance.now() - start), "ms");
        expect(await page.getByRole("option").count()).toBeLessThan(100);
      }
      expect(errors).toEqual([]);
      await close();
    } finally {
      await serving.stop();
      dir.remove();
    }
  });
});

describe("a token", () => {
  it("is needed, and asked for in a sentence", async () => {
    const serving = await inspect("--embedded", demo);
    const { page, errors, close } = await open(browser, new URL("/", serving.url).toString());
    await page.getByText("These sessions are shown to holders of a token only").waitFor();
    await page.getByLabel("Token").fill(new URL(serving.url).hash.slice("#token=".length));
    await page.getByRole("button", { name: "Use it in this tab" }).click();
    await page.getByRole("option").first().waitFor();
    expect(page.url()).not.toContain("token");
    expect(errors.filter((e) => !e.includes("401"))).toEqual([]);
    await close();
    await serving.stop();
  });
});

describe("a daemon", () => {
  it("is followed while a session goes on", async () => {
    const dir = folder();
    const api = "unix://" + join(dir.path, "api.sock");
    const daemon = await Serving.start(
      ["serve", "--listen=", "--unix-socket", join(dir.path, "api.sock"), "--data-dir", join(dir.path, "data"), "--inspect-listen", "127.0.0.1:0"],
      /serving the inspector.*address=(127\.0\.0\.1:\d+)/,
    );
    try {
      contextd(["health", "--addr", api, "--wait", "60s"]);
      contextd(["append", "live", "--addr", api], event("user", text("Begin.")));
      contextd(["assemble", "live", "--addr", api, "--max-tokens", "16k"]);
      const { page, errors, close } = await open(browser, `http://${daemon.url}/session/live`);
      await page.getByText("live", { exact: true }).last().waitFor();
      await expect.poll(() => page.getByRole("option").count()).toBe(1);
      contextd(["append", "live", "--addr", api], event("assistant", text("Done.")) + "\n" + event("user", text("Go on.")));
      contextd(["assemble", "live", "--addr", api, "--max-tokens", "16k"]);
      await expect.poll(() => page.getByRole("option").count()).toBe(2);
      contextd(["record", "live", "--addr", api, "--projection", "p3-0001", "--input-tokens", "4321"]);
      await page.reload();
      await page.getByText("provider 4.3k").waitFor();
      expect(errors).toEqual([]);
      await close();
    } finally {
      await daemon.stop();
      dir.remove();
    }
  });
});

describe("transcripts", () => {
  it("of 10,000 events are opened at once, and painted soon", async () => {
    const dir = folder();
    const path = join(dir.path, "long.jsonl");
    writeFileSync(path, long(10_000));
    const serving = await inspect(path, "--max-tokens", "64k");
    try {
      const { page, errors, close } = await open(browser, at(serving.url, "/session/long"));
      await page.getByText("1,000 contexts").waitFor({ timeout: 500_000 });
      const painted: number[] = [];
      for (let i = 0; i < 3; i++) {
        await page.reload();
        const row = page.locator(".row .meter").first();
        await row.waitFor();
        painted.push(await page.evaluate(() => performance.now()));
      }
      console.log("a session of 10,000 events, 1,000 contexts: rows after", painted.map((n) => Math.round(n) + " ms").join(", "));
      await page.getByText("1,000 contexts").waitFor();
      await page.locator(".list").focus();
      const newest = async () => {
        await page.keyboard.press("End"); // of the rows so far
        return page.locator(".row.selected .ordinal").textContent();
      };
      await expect.poll(newest).toContain("1000");
      await page.keyboard.press("Enter");
      await page.locator(".row.selected").waitFor();
      await page.locator(".pane .list").focus();
      await page.keyboard.press("Home");
      await expect.poll(() => page.locator(".row.selected .seq").textContent()).toBe("1");
      await expect.poll(() => page.locator(".row.selected .half").first().textContent()).toContain("Check every file.");
      expect(errors).toEqual([]);
      await close();
    } finally {
      await serving.stop();
      dir.remove();
    }
  });

  const corpus = new URL("../../../shared/corpus", import.meta.url).pathname;
  it.skipIf(!existsSync(corpus))("of other harnesses are opened", async () => {
    const files = readdirSync(corpus, { recursive: true, encoding: "utf8" }).filter((f) => /\.jsonl(\.gz)?$/.test(f)).sort().slice(0, 12);
    const serving = await inspect(...files.map((f) => join(corpus, f)));
    try {
      const { page, errors, close } = await open(browser, serving.url);
      await page.getByRole("option").first().waitFor();
      const names = await page.getByRole("option").locator("a").allTextContents();
      let opened = 0;
      for (const name of names) {
        await page.goto(new URL("/session/" + encodeURIComponent(name), serving.url).toString());
        await page.locator(".row .meter, .empty").first().waitFor();
        if ((await page.locator(".row").count()) === 0 || opened++ === 6) continue;
        await page.keyboard.press("End");
        await page.keyboard.press("Enter");
        await page.locator(".detail h3").waitFor();
      }
      expect(opened).toBeGreaterThan(0);
      expect(errors).toEqual([]);
      await close();
    } finally {
      await serving.stop();
    }
  });
});

