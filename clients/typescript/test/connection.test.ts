import assert from "node:assert/strict";
import { once } from "node:events";
import { constants, createServer, type Http2Server } from "node:http2";
import type { AddressInfo } from "node:net";
import { test, type TestContext } from "node:test";
import { Connection } from "../src/connection.js";
import * as contextd from "../src/index.js";

async function listening(t: TestContext, server: Http2Server): Promise<string> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test("a request after GOAWAY does not end the process", async (t) => {
  const address = await listening(t, createServer((_, response) => response.end()));
  const connection = new Connection(`http://${address}`, {}, {});
  t.after(() => connection.abort());
  const ask = async () => {
    const stream = await connection.request("POST", "/", {}, {});
    const { session } = stream;
    stream.resume().end();
    await once(stream, "close");
    return session!;
  };
  const session = await ask();
  session.emit("goaway", constants.NGHTTP2_NO_ERROR, 1);
  assert.notEqual(await ask(), session, "the session that was ended is used again");
});

test("a client that is closed calls no more", async (t) => {
  const server = createServer();
  let streams = 0;
  server.on("stream", () => streams++);
  const client = new contextd.Client(await listening(t, server));
  client.close();
  await assert.rejects(client.session("s").get(), { code: "CANCELLED", message: "the client is closed" });
  assert.equal(streams, 0);
});

test("a stream that a daemon refuses as it stops is tried again", async (t) => {
  const server = createServer();
  const client = new contextd.Client(await listening(t, server), { sleep: async () => {} });
  t.after(() => client.close());
  let streams = 0;
  server.on("stream", (stream) => {
    stream.on("error", () => {}).close(constants.NGHTTP2_REFUSED_STREAM);
    if (++streams === 2) client.close();
  });
  await assert.rejects(client.session("s").append(contextd.user("hi")), contextd.ContextdError);
  assert.equal(streams, 2);
});
