// scenario ADDRESS FILE runs a file of steps and reports each; agent [ADDRESS] is a small
// agent loop. Both talk to the daemon by the stubs of its protos alone; the package in
// clients/typescript saves most of what is written out here.
import { runAgent } from "./agent.js";
import { connect } from "./connection.js";
import { runScenario } from "./scenario.js";
import { findOrStart } from "./sidecar.js";

async function main([command, address, file]: string[]): Promise<void> {
  if (command === "scenario" && address && file) {
    const connection = connect(address);
    try {
      await runScenario(connection.client, file, (line) => console.log(JSON.stringify(line)));
    } finally {
      connection.close();
    }
    return;
  }
  if (command !== "agent") throw new Error("usage: scenario ADDRESS FILE | agent [ADDRESS]");
  const sidecar = await findOrStart(address);
  const connection = connect(sidecar.address);
  try {
    await runAgent(connection.client);
  } finally {
    connection.close();
    await sidecar.stop();
  }
}

main(process.argv.slice(2)).catch((err: unknown) => {
  console.error(err);
  process.exitCode = 1;
});
