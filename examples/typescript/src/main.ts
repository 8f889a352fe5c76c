// scenario ADDRESS FILE runs a file of steps and reports each; agent [ADDRESS] is a small
// agent loop.
import { Client, startSidecar } from "contextd-client";
import { runAgent } from "./agent.js";
import { runScenario } from "./scenario.js";

async function main([command, address, file]: string[]): Promise<void> {
  if (command === "scenario" && address && file) {
    using client = new Client(address);
    await runScenario(client, file);
    return;
  }
  if (command !== "agent") throw new Error("usage: scenario ADDRESS FILE | agent [ADDRESS]");
  const sidecar = address ? undefined : await startSidecar();
  try {
    using client = new Client(address ?? sidecar!.address);
    await runAgent(client);
  } finally {
    await sidecar?.stop();
  }
}

main(process.argv.slice(2)).catch((err: unknown) => {
  console.error(err);
  process.exitCode = 1;
});
