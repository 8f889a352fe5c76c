package contextd.example;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.Message;
import com.google.protobuf.util.JsonFormat;
import contextd.v1.Assembly.AssembleContextRequest;
import contextd.v1.Assembly.ContextHeader;
import contextd.v1.ContextServiceGrpc.ContextServiceBlockingStub;
import contextd.v1.EventOuterClass.Event;
import contextd.v1.FormatOuterClass.Format;
import contextd.v1.Log.AppendEventsRequest;
import contextd.v1.Log.AppendEventsResponse;
import contextd.v1.Log.EventReceipt;
import contextd.v1.ProjectionOuterClass.RedactionPointer;
import contextd.v1.ProjectionOuterClass.ResolvePointerRequest;
import io.grpc.StatusRuntimeException;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.EnumMap;
import java.util.Map;

/** Runs examples/scenario.json; examples/README.md says what it is. */
final class Scenario {
  private static final Gson LINES = new GsonBuilder().disableHtmlEscaping().create();

  private final ContextServiceBlockingStub client;
  private final String session;
  private final Map<Format, HeldContext> held = new EnumMap<>(Format.class);
  private ContextHeader newest = ContextHeader.getDefaultInstance();

  private Scenario(ContextServiceBlockingStub client, String session) {
    this.client = client;
    this.session = session;
  }

  /** Runs the steps of a file and writes one line for each. */
  static void run(ContextServiceBlockingStub client, Path file, PrintStream out) throws IOException {
    JsonObject scenario = JsonParser.parseString(Files.readString(file)).getAsJsonObject();
    Scenario s = new Scenario(client, scenario.get("session").getAsString() + "-java");
    int i = 0;
    for (JsonElement step : scenario.getAsJsonArray("steps")) {
      JsonObject line = new JsonObject();
      line.addProperty("step", i);
      try {
        s.play(step.getAsJsonObject(), line);
      } catch (RuntimeException | IOException e) {
        throw new IllegalStateException("step " + i + ": " + e.getMessage(), e);
      }
      out.print(LINES.toJson(line) + "\n");
      i++;
    }
    out.flush();
  }

  private void play(JsonObject step, JsonObject line) throws IOException {
    if (step.has("append")) {
      append(step.get("append"), line);
    } else if (step.has("assemble")) {
      assemble(step.get("assemble"), line);
    } else if (step.has("resolve_first_pointer")) {
      resolve(line);
    } else if (step.has("error")) {
      fail(step.getAsJsonObject("error"), line);
    } else {
      throw new IllegalStateException("nothing to do");
    }
  }

  private void append(JsonElement events, JsonObject line) throws IOException {
    AppendEventsRequest.Builder request = AppendEventsRequest.newBuilder().setSessionId(session);
    for (JsonElement event : events.getAsJsonArray()) {
      request.addEvents(parse(event, Event.newBuilder()));
    }
    AppendEventsResponse response = client.appendEvents(request.build());
    long duplicates = response.getReceiptsList().stream().filter(EventReceipt::getDuplicate).count();
    line.addProperty("appended", response.getReceiptsCount() - duplicates);
    line.addProperty("duplicates", duplicates);
  }

  private void assemble(JsonElement json, JsonObject line) throws IOException {
    AssembleContextRequest request = assembleRequest(json);
    HeldContext context = held.computeIfAbsent(request.getFormat(), f -> new HeldContext());
    int sent = context.assemble(client, request);
    newest = context.header;
    line.addProperty("context_hash", HeldContext.hashOf(context.messages));
    line.addProperty("prefix_hash", newest.getPrefixHash());
    line.addProperty("messages", context.messages.size());
    line.addProperty("sent", sent);
    line.addProperty("bytes", HeldContext.sizeOf(context.messages));
  }

  private void resolve(JsonObject line) {
    RedactionPointer pointer = newest.getProjection().getRedactionPointers(0);
    String hash = HeldContext.bodyHash(client
        .resolvePointer(ResolvePointerRequest.newBuilder().setSessionId(session).setPointer(pointer.getPointer()).build())
        .getBlock().getToolResult());
    HeldContext.require(hash.equals(pointer.getContentHash()),
        pointer.getPointer() + " gives back " + hash + ", not " + pointer.getContentHash());
    line.addProperty("resolved_sha256", hash);
  }

  private void fail(JsonObject expected, JsonObject line) throws IOException {
    ApiError error;
    try {
      if (expected.has("append")) {
        client.appendEvents(
            parse(expected.get("append"), AppendEventsRequest.newBuilder()).setSessionId(session).build());
      } else {
        // Nothing is held of what fails.
        new HeldContext().assemble(client, assembleRequest(expected.get("assemble")));
      }
      throw new IllegalStateException("it did not fail");
    } catch (StatusRuntimeException e) {
      error = ApiError.of(e);
    }
    String code = expected.get("code").getAsString();
    String field = expected.get("field").getAsString();
    HeldContext.require(error.code().equals(code) && error.field().equals(field),
        error.code() + " in \"" + error.field() + "\", not " + code + " in \"" + field + "\"");
    line.addProperty("code", error.code());
    line.addProperty("field", error.field());
  }

  private AssembleContextRequest assembleRequest(JsonElement json) throws IOException {
    return parse(json, AssembleContextRequest.newBuilder()).setSessionId(session).build();
  }

  private static <B extends Message.Builder> B parse(JsonElement json, B builder) throws InvalidProtocolBufferException {
    JsonFormat.parser().merge(json.toString(), builder);
    return builder;
  }
}
