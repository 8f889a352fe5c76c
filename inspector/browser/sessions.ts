// Generated sessions for the tests, in the formats of "contextd append" and "contextd import".

type Block = Record<string, unknown>;

export function event(role: string, ...blocks: Block[]): string {
  return JSON.stringify({ message: { role: "ROLE_" + role.toUpperCase(), blocks } });
}

export const text = (text: string): Block => ({ text: { text } });
const args = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64");
export const call = (id: string, name: string, value: unknown): Block => ({ tool_call: { call_id: id, name, arguments_json: args(value) } });
export const result = (id: string, ...content: Block[]): Block => ({ tool_result: { call_id: id, content } });

// A picture of a single blue pixel.
const dot = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPj/HwADBwIAMCbHYQAAAABJRU5ErkJggg==";

// hostile is a session whose content tries to run as markup.
export const hostile = [
  event("system", text("You are <b>bold</b>.")),
  event("user", text('<img src=x onerror="document.title=\'run\'"><script>document.title="run"</script> & <a href="javascript:alert(1)">click</a>')),
  event("assistant", text("reads \u202egnp.exe\u202c backwards, and \u200bnothing\u2060 between"), call("c1", "<b>shell</b>", { command: "</pre><script>alert(1)</script>" })),
  event("tool", result("c1", text("x".repeat(400_000)))),
  event("assistant", text("مرحبا بالعالم, then שלום, then \u0007 and \u001b[31mred\u001b[0m"), call("c2", "look", {})),
  event("tool", result("c2", { media: { mime_type: "image/png", data: dot } }, { media: { mime_type: "image/svg+xml", data: Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>').toString("base64") } })),
  event("user", { media: { mime_type: "image/png", uri: "https://evil.example/pixel.png" } }, text("What is at http://evil.example ?")),
  event("assistant", text("Nothing that is loaded. {{7*7}} ${7*7} %s")),
].join("\n");

// long is a transcript of Claude Code with so many events. Each message of the model has nine tool calls, so
// every tenth event is a model call.
export function long(events: number): string {
  const lines: string[] = [];
  let parent: string | null = null;
  const add = (type: string, message: unknown) => {
    const n = lines.length;
    const uuid = `00000000-0000-4000-8000-${String(n).padStart(12, "0")}`;
    const timestamp = new Date(Date.UTC(2026, 0, 5) + n * 1000).toISOString();
    const common = { isSidechain: false, userType: "external", cwd: "/repo", sessionId: "00000000-0000-4000-8000-0000000000aa", version: "1.0.0" };
    lines.push(JSON.stringify({ parentUuid: parent, ...common, type, message, uuid, timestamp }));
    parent = uuid;
  };
  add("user", { role: "user", content: "Check every file." });
  while (lines.length < events) {
    const tools = [1, 2, 3, 4, 5, 6, 7, 8, 9].map((i) => `${lines.length}_${i}`);
    const content = tools.map((t) => ({ type: "tool_use", id: "toolu_" + t, name: "Read", input: { file_path: `/repo/file${t}.go` } }));
    add("assistant", { id: "msg_" + lines.length, type: "message", role: "assistant", model: "claude-sonnet-4-5", content });
    for (const t of tools) {
      add("user", { role: "user", content: [{ type: "tool_result", tool_use_id: "toolu_" + t, content: `package main // file ${t}\n` + "line of the file\n".repeat(20) }] });
    }
  }
  return lines.join("\n") + "\n";
}
