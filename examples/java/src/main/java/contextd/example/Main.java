package contextd.example;

import contextd.v1.ContextServiceGrpc;
import contextd.v1.ContextServiceGrpc.ContextServiceBlockingStub;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;

/**
 * A client of contextd, twice: a small agent loop, and the scenario that clients in all
 * languages run. Arguments: {@code agent [ADDRESS]} or {@code scenario ADDRESS FILE}.
 */
final class Main {
  private Main() {}

  private interface Use {
    void with(ContextServiceBlockingStub client) throws Exception;
  }

  public static void main(String[] args) throws Exception {
    // Whatever the platform's own encoding is.
    PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    if (args.length == 3 && args[0].equals("scenario")) {
      connected(args[1], client -> Scenario.run(client, Path.of(args[2]), out));
    } else if (args.length == 2 && args[0].equals("agent")) {
      connected(args[1], client -> new Agent(client, out).run());
    } else if (args.length == 1 && args[0].equals("agent")) {
      try (Sidecar sidecar = Sidecar.find()) {
        connected(sidecar.address(), client -> new Agent(client, out).run());
      }
    } else {
      System.err.println("usage: agent [ADDRESS] | scenario ADDRESS FILE");
      System.exit(2);
    }
  }

  private static void connected(String address, Use use) throws Exception {
    ManagedChannel channel = Grpc.newChannelBuilder(address, InsecureChannelCredentials.create())
        // An event, and so a message, may be larger than gRPC's default of 4 MiB.
        .maxInboundMessageSize(Integer.MAX_VALUE)
        .build();
    try {
      use.with(ContextServiceGrpc.newBlockingStub(channel));
    } finally {
      channel.shutdownNow().awaitTermination(10, TimeUnit.SECONDS);
    }
  }
}
