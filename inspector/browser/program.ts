// The program under test, and the browser.
import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium, type Browser, type Page } from "playwright-core";

export const program = process.env["CONTEXTD_BINARY"] ?? "contextd";
const chromiumPath = process.env["CHROMIUM"] ?? "/usr/bin/chromium";

// contextd runs a command to its end.
export function contextd(args: string[], input = ""): string {
  const done = spawnSync(program, args, { input, encoding: "utf8", maxBuffer: 1 << 30, env: environment() });
  if (done.status !== 0) throw new Error(`contextd ${args.join(" ")}: ${done.stderr}`);
  return done.stdout + done.stderr;
}

function environment() {
  return { PATH: process.env["PATH"], HOME: process.env["HOME"], NO_COLOR: "1" };
}

export class Serving {
  private constructor(
    private readonly child: ChildProcess,
    readonly url: string,
  ) {}

  // start starts a command that keeps running, and returns once it has printed the address of its page.
  static start(args: string[], where: RegExp): Promise<Serving> {
    const child = spawn(program, args, { env: environment(), stdio: ["ignore", "pipe", "pipe"] });
    return new Promise((resolve, reject) => {
      let text = "";
      const more = (some: Buffer) => {
        text += some.toString();
        const found = where.exec(text);
        if (found) resolve(new Serving(child, found[1]!));
      };
      child.stdout.on("data", more);
      child.stderr.on("data", more);
      child.on("exit", (code) => reject(new Error(`contextd ${args.join(" ")} ended with ${code}: ${text}`)));
    });
  }

  stop(): Promise<void> {
    return new Promise((resolve) => {
      if (this.child.exitCode !== null) return resolve();
      this.child.on("exit", () => resolve());
      this.child.kill("SIGINT");
    });
  }
}

export function inspect(...args: string[]): Promise<Serving> {
  return Serving.start(["inspect", ...args], /(http:\/\/127\.0\.0\.1:\d+\/#token=\S+)/);
}

export function folder(): { path: string; remove: () => void } {
  const path = mkdtempSync(join(tmpdir(), "contextd-inspector-"));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

export function launch(): Promise<Browser> {
  return chromium.launch({
    executablePath: chromiumPath,
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  });
}

export type Opened = { page: Page; errors: string[]; close: () => Promise<void> };

// open opens an address in a new window. Errors on the page's console, and requests to other hosts, fail the
// test.
export async function open(browser: Browser, url: string, look: { dark?: boolean; width?: number } = {}): Promise<Opened> {
  const context = await browser.newContext({ viewport: { width: look.width ?? 1280, height: 720 }, colorScheme: look.dark ? "dark" : "light", reducedMotion: "reduce" });
  const page = await context.newPage();
  page.setDefaultTimeout(120_000);
  const errors: string[] = [];
  const own = new URL(url).host;
  page.on("pageerror", (e) => errors.push(e.message));
  page.on("console", (m) => {
    if (m.type() === "error" || m.type() === "warning") errors.push(m.text());
  });
  page.on("request", (r) => {
    const to = new URL(r.url());
    if (to.host !== own && to.protocol !== "blob:") errors.push("asked for " + r.url());
  });
  page.on("dialog", (d) => {
    errors.push("a dialog: " + d.message());
    void d.dismiss();
  });
  await page.goto(url);
  return { page, errors, close: () => context.close() };
}

// at is the address of another path of the page, with the same token.
export function at(url: string, path: string): string {
  const u = new URL(path, url);
  u.hash = new URL(url).hash;
  return u.toString();
}
