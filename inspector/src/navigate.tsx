import { createContext, type ComponentChildren } from "preact";
import { useContext } from "preact/hooks";
import { href, type Route } from "./route";

export type Go = (to: Route, how?: "push" | "replace") => void;

export const Navigation = createContext<Go>(() => undefined);

export function useGo(): Go {
  return useContext(Navigation);
}

// Link is a link within the page. With a modifier key it opens like any other link.
export function Link(props: { to: Route; class?: string; title?: string; children: ComponentChildren }) {
  const go = useGo();
  return (
    <a
      href={href(props.to)}
      class={props.class}
      title={props.title}
      onClick={(e) => {
        if (e.button !== 0 || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey) return;
        e.preventDefault();
        go(props.to);
      }}
    >
      {props.children}
    </a>
  );
}
