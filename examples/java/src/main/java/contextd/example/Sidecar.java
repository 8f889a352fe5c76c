package contextd.example;

import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.TimeUnit;

/** The daemon: one that is there, or one that was started and is stopped by close. */
record Sidecar(String address, Process process) implements AutoCloseable {
  /** Takes CONTEXTD_ADDR, or starts CONTEXTD_BINARY or contextd on loopback. */
  static Sidecar find() throws IOException {
    String address = System.getenv("CONTEXTD_ADDR");
    if (address != null && !address.isEmpty()) {
      return new Sidecar(address, null);
    }
    String binary = System.getenv().getOrDefault("CONTEXTD_BINARY", "contextd");
    Process process = new ProcessBuilder(
            binary, "serve", "--store", "memory", "--listen", "127.0.0.1:0", "--log-format", "json")
        .redirectOutput(ProcessBuilder.Redirect.DISCARD)
        .start();
    BufferedReader log = new BufferedReader(new InputStreamReader(process.getErrorStream(), StandardCharsets.UTF_8));
    for (String line; (line = log.readLine()) != null; ) {
      if (!line.startsWith("{")) {
        continue;
      }
      JsonObject entry = JsonParser.parseString(line).getAsJsonObject();
      if (entry.get("msg").getAsString().equals("listening")) {
        // The daemon must not block on a log that nobody reads.
        Thread drain = new Thread(() -> log.lines().forEach(l -> {}));
        drain.setDaemon(true);
        drain.start();
        return new Sidecar(entry.get("address").getAsString(), process);
      }
    }
    throw new IOException("the daemon ended before it listened");
  }

  @Override
  public void close() throws InterruptedException {
    if (process != null) {
      process.destroy();
      if (!process.waitFor(30, TimeUnit.SECONDS)) {
        process.destroyForcibly().waitFor();
      }
    }
  }
}
