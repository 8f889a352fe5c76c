import { useCallback, useEffect, useLayoutEffect, useState } from "preact/hooks";
import { Call } from "./call";
import { Compare } from "./compare";
import { Help } from "./help";
import { Link, Navigation, type Go } from "./navigate";
import { href, parse, type Route } from "./route";
import { Session } from "./session";
import { Sessions } from "./sessions";

const start: Route = { page: "sessions", query: "", order: "updated", after: "" };

export function App() {
  const [route, setRoute] = useState<Route>(() => parse(location.pathname, location.search));
  const [help, setHelp] = useState(false);
  const go = useCallback<Go>((to, how = "push") => {
    history[how === "push" ? "pushState" : "replaceState"](null, "", href(to));
    setRoute(to);
  }, []);
  useEffect(() => {
    const back = () => setRoute(parse(location.pathname, location.search));
    addEventListener("popstate", back);
    return () => removeEventListener("popstate", back);
  }, []);
  useLayoutEffect(() => {
    const keys = (e: KeyboardEvent) => {
      if (e.metaKey || e.ctrlKey || e.altKey) return;
      const typing = e.target instanceof HTMLElement && e.target.matches("input, textarea, select");
      if (e.key === "Escape" && typing) (e.target as HTMLElement).blur();
      else if (typing) return;
      else if (e.key === "/") document.querySelector<HTMLElement>("input.search")?.focus();
      else if (e.key === "?") setHelp((h) => !h);
      else if (e.key === "Escape") setHelp(false);
      else if (e.key === "u") go(up(route));
      else if (e.target === document.body && ["ArrowDown", "ArrowUp", "j", "k", "Enter", "Home", "End", "PageDown", "PageUp"].includes(e.key)) {
        // These keys move the page's list, wherever the focus is.
        const list = document.querySelector<HTMLElement>("[data-main] .list, main .list");
        if (list === null) return;
        list.focus();
        list.dispatchEvent(new KeyboardEvent("keydown", { key: e.key, bubbles: true }));
      } else return;
      e.preventDefault();
    };
    addEventListener("keydown", keys);
    return () => removeEventListener("keydown", keys);
  }, [route, go]);
  useEffect(() => {
    document.title = title(route);
  }, [route]);
  return (
    <Navigation.Provider value={go}>
      <header>
        <Link to={start} class="brand">
          contextd
        </Link>
        <nav aria-label="Place">
          <Crumbs route={route} />
        </nav>
        <button class="quiet" onClick={() => setHelp(!help)} aria-expanded={help}>
          keys ?
        </button>
      </header>
      {help && <Help close={() => setHelp(false)} />}
      <Page route={route} />
    </Navigation.Provider>
  );
}

function Page({ route }: { route: Route }) {
  switch (route.page) {
    case "sessions":
      return <Sessions route={route} />;
    case "session":
      return <Session key={route.session} session={route.session} />;
    case "call":
      return <Call key={route.session + "\n" + route.projection} route={route} />;
    case "compare":
      return <Compare key={href(route)} route={route} />;
    case "unknown":
      return (
        <main>
          <p class="refused" role="alert">
            Nothing is at {href(route)}. <Link to={start}>All sessions</Link>
          </p>
        </main>
      );
  }
}

function Crumbs({ route }: { route: Route }) {
  if (route.page === "sessions" || route.page === "unknown") return null;
  const session = <Link to={{ page: "session", session: route.session }}>{route.session}</Link>;
  switch (route.page) {
    case "session":
      return session;
    case "call":
      return (
        <>
          {session} <span aria-hidden="true">/</span> <span>context {route.projection}</span>
        </>
      );
    case "compare":
      return (
        <>
          {session} <span aria-hidden="true">/</span>{" "}
          <span>
            {route.before} and {route.after}
          </span>
        </>
      );
  }
}

function up(route: Route): Route {
  return route.page === "call" || route.page === "compare" ? { page: "session", session: route.session } : start;
}

function title(route: Route): string {
  const where = route.page === "call" ? `${route.projection} of ${route.session}` : "session" in route ? route.session : "sessions";
  return where + " - contextd";
}
