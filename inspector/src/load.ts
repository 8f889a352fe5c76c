import { useEffect, useState } from "preact/hooks";
import { cancelled, refusal, type Refusal } from "./api";

export type Loaded<T> = { value?: T; refusal?: Refusal; loading: boolean };

// useLoad calls load when the key changes, and discards results for earlier keys. The last result stays until
// the new one is there.
export function useLoad<T>(key: string, load: (signal: AbortSignal) => Promise<T>): Loaded<T> {
  const [state, set] = useState<Loaded<T> & { key: string }>({ key, loading: true });
  useEffect(() => {
    const control = new AbortController();
    set((old) => ({ ...old, loading: true }));
    load(control.signal).then(
      (value) => !control.signal.aborted && set({ key, value, loading: false }),
      (error) => !control.signal.aborted && !cancelled(error) && set({ key, refusal: refusal(error), loading: false }),
    );
    return () => control.abort();
  }, [key]);
  return state;
}
