import { useEffect, useState } from "preact/hooks";
import { cancelled, contexts } from "./api";

export type Neighbours = { before?: string; after?: string };

const listed = new Map<string, string[]>();

// useNeighbours returns the contexts before and after a context of a session.
export function useNeighbours(session: string, projection: string): Neighbours {
  const [ids, set] = useState<string[]>(listed.get(session) ?? []);
  useEffect(() => {
    const control = new AbortController();
    const read = async () => {
      const all: string[] = [];
      let pageToken = "";
      do {
        const page = await contexts.listProjections({ sessionId: session, brief: true, pageSize: 1000, pageToken }, { signal: control.signal });
        all.push(...page.projections.map((p) => p.projectionId));
        pageToken = page.nextPageToken;
      } while (pageToken !== "");
      listed.clear();
      listed.set(session, all);
      set(all);
    };
    if (!(listed.get(session) ?? []).slice(0, -1).includes(projection)) {
      read().catch((e) => {
        if (!cancelled(e)) set([]); // the page says itself why the session cannot be read
      });
    }
    return () => control.abort();
  }, [session, projection]);
  const at = ids.indexOf(projection);
  if (at < 0) return {};
  return { ...(at > 0 && { before: ids[at - 1]! }), ...(at < ids.length - 1 && { after: ids[at + 1]! }) };
}
