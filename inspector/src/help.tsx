const keys: [string, string][] = [
  ["j k ↓ ↑", "the next and the previous row"],
  ["Page, Home, End", "further"],
  ["Enter", "open the row"],
  ["/", "search"],
  ["[ ]", "the call before and after"],
  ["c", "compare with the call before"],
  ["u", "back up"],
  ["?", "these keys"],
];

export function Help({ close }: { close: () => void }) {
  return (
    <section class="help" aria-label="Keys">
      <dl>
        {keys.map(([key, what]) => (
          <div key={key}>
            <dt>{key}</dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <button class="quiet" onClick={close}>
        close
      </button>
    </section>
  );
}
