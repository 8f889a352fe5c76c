import { describe, expect, it } from "vitest";
import { href, parse, type Route } from "../src/route";

const routes: Route[] = [
  { page: "sessions", query: "", order: "updated", after: "" },
  { page: "sessions", query: "a b&c=ü", order: "events", after: "dG9rZW4" },
  { page: "session", session: "team/agent:1@host" },
  { page: "call", session: "a/b", projection: "p12-0001", event: 0 },
  { page: "call", session: "a", projection: "p12-0001", event: 7 },
  { page: "compare", session: "a/subagents/1", before: "p1-0001", after: "p2-0001" },
];

describe("an address", () => {
  it.each(routes)("of %o leads back to it", (route) => {
    const url = new URL(href(route), "http://localhost");
    expect(url.host).toBe("localhost");
    expect(parse(url.pathname, url.search)).toEqual(route);
  });

  it.each(["/session", "/session/a/b", "/session/a/call", "/session/a/compare/x", "/%ff", "/elsewhere"])("%s is nowhere", (path) => {
    expect(parse(path, "").page).toBe("unknown");
  });

  it.each(["-1", "x", "1e99", "0.5"])("has no event %s", (event) => {
    expect(parse("/session/a/call/p1-0001", "?event=" + event)).toMatchObject({ event: 0 });
  });
});
