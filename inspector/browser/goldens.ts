// Screenshots, compared with ones that a person has checked.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import pixelmatch from "pixelmatch";
import type { Page } from "playwright-core";
import { PNG } from "pngjs";
import { expect } from "vitest";

const here = dirname(fileURLToPath(import.meta.url));
const rewrite = process.env["REWRITE"] === "1";

// most is the share of a picture that may differ, since browser versions draw fonts a little differently.
const most = 0.03;

// still replaces texts that differ in each run, such as times, by fixed ones.
async function still(page: Page) {
  await page.evaluate(() => {
    for (const e of document.querySelectorAll(".clock, .time, .facts span")) {
      const walker = document.createTreeWalker(e, NodeFilter.SHOW_TEXT);
      while (walker.nextNode()) {
        const t = walker.currentNode as Text;
        t.data = t.data.replace(/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d/, "2026-01-05 09:00:00").replace(/^\d\d:\d\d:\d\d$/, "09:00:00");
      }
    }
  });
}

// looksLike compares a screenshot of the page with browser/goldens/NAME.png. REWRITE=1 writes the file
// instead.
export async function looksLike(page: Page, name: string) {
  await still(page);
  const shot = await page.screenshot({ animations: "disabled", caret: "hide" });
  const path = join(here, "goldens", name + ".png");
  if (rewrite || !existsSync(path)) {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, shot);
    expect(rewrite, `${path} was not there: look at it, and commit it`).toBe(true);
    return;
  }
  const want = PNG.sync.read(readFileSync(path));
  const got = PNG.sync.read(shot);
  expect([got.width, got.height], name).toEqual([want.width, want.height]);
  const diff = new PNG({ width: want.width, height: want.height });
  const differing = pixelmatch(want.data, got.data, diff.data, want.width, want.height, { threshold: 0.2 });
  if (differing > most * want.width * want.height) {
    const failed = join(here, "failed", name);
    mkdirSync(dirname(failed), { recursive: true });
    writeFileSync(failed + ".png", shot);
    writeFileSync(failed + ".diff.png", PNG.sync.write(diff));
  }
  expect(differing / (want.width * want.height), `${name} looks otherwise: see browser/failed; REWRITE=1 takes it over`).toBeLessThanOrEqual(most);
}
