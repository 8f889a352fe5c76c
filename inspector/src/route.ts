// Each view of the page has an address, so that a link to a call can be sent to others.

export type Order = "id" | "updated" | "created" | "events" | "calls" | "bytes";
export const orders: readonly Order[] = ["id", "updated", "created", "events", "calls", "bytes"];

export type Route =
  | { page: "sessions"; query: string; order: Order; after: string }
  | { page: "session"; session: string }
  // event is the selected event; 0: none.
  | { page: "call"; session: string; projection: string; event: number }
  | { page: "compare"; session: string; before: string; after: string }
  | { page: "unknown"; path: string };

export function parse(path: string, search: string): Route {
  const query = new URLSearchParams(search);
  let parts: string[];
  try {
    parts = path.split("/").filter((p) => p !== "").map(decodeURIComponent);
  } catch {
    return { page: "unknown", path };
  }
  const [first, session, what, a, b] = parts;
  if (parts.length === 0) {
    const order = query.get("order") as Order;
    return {
      page: "sessions",
      query: query.get("query") ?? "",
      order: orders.includes(order) ? order : "updated",
      after: query.get("after") ?? "",
    };
  }
  if (first === "session" && session !== undefined) {
    if (parts.length === 2) return { page: "session", session };
    if (what === "call" && a !== undefined && parts.length === 4) {
      const event = Number(query.get("event") ?? "0");
      return { page: "call", session, projection: a, event: Number.isSafeInteger(event) && event > 0 ? event : 0 };
    }
    if (what === "compare" && a !== undefined && b !== undefined && parts.length === 5) {
      return { page: "compare", session, before: a, after: b };
    }
  }
  return { page: "unknown", path };
}

export function href(route: Route): string {
  switch (route.page) {
    case "sessions":
      return "/" + search({ query: route.query, order: route.order === "updated" ? "" : route.order, after: route.after });
    case "session":
      return path("session", route.session);
    case "call":
      return path("session", route.session, "call", route.projection) + search({ event: route.event > 0 ? String(route.event) : "" });
    case "compare":
      return path("session", route.session, "compare", route.before, route.after);
    case "unknown":
      return route.path;
  }
}

function path(...parts: string[]): string {
  return "/" + parts.map(encodeURIComponent).join("/");
}

function search(values: Record<string, string>): string {
  const set = new URLSearchParams(Object.entries(values).filter(([, value]) => value !== ""));
  return set.size > 0 ? "?" + set.toString() : "";
}
