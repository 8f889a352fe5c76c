import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { setToken, type Refusal } from "./api";

export function Status({ loading, children }: { loading: boolean; children?: ComponentChildren }) {
  return (
    <span class="status" role="status" aria-live="polite">
      {children || (loading ? "loading…" : "")}
    </span>
  );
}

// Refused explains why something cannot be shown, and asks for a token if that would help.
export function Refused({ refusal }: { refusal: Refusal | undefined }) {
  const [token, set] = useState("");
  if (refusal === undefined) return null;
  return (
    <div class="refused" role="alert">
      <p>{refusal.sentence}</p>
      {refusal.needsToken && (
        <form
          onSubmit={(e) => {
            e.preventDefault();
            setToken(token.trim());
            location.reload();
          }}
        >
          <label>
            Token{" "}
            <input type="password" autocomplete="off" value={token} onInput={(e) => set(e.currentTarget.value)} />
          </label>{" "}
          <button type="submit">Use it in this tab</button>
        </form>
      )}
    </div>
  );
}
