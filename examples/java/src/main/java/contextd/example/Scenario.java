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
import contextd.v1.SessionOuterClass.LogMark;
import io.grpc.StatusRuntimeException;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;

/** Runs examples/scenario.json; examples/README.md says what it is. */
final class Scenario {
  private static final Gson LINES = new GsonBuilder().disableHtmlEscaping().create();

  private final ContextServiceBlockingStub client;
  private final String session;
  private final Map<Format, HeldContext> held = new EnumMap<>(Format.class);
  private ContextHeader newest = ContextHeader.getDefaultInstance();
  private final List<Event> appended = new ArrayList<>(); // all of them, for a log that is lost
  private LogMark known = LogMark.getDefaultInstance(); // the newest event appended; by default none

  private Scenario(ContextServiceBlockingStub client, String session) {
    this.client = client;
    this.session = session;
  }

  /** Runs the steps of a file and writes one line for each. */
  static void run(ContextServiceBlockingStub client, Path file, PrintStream out) throws Exception {
    JsonObject scenario = JsonParser.parseString(Files.readString(file)).getAsJsonObject();
    Scenario s = new Scenario(client, scenario.get("session").getAsString() + "-java");
    BufferedReader runner = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
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
      out.flush();
      // The runner does something to the daemon.
      HeldContext.require(!line.has("daemon") || runner.readLine() != null, "nobody answers");
      i++;
    }
  }

  private void play(JsonObject step, JsonObject line) throws IOException, InterruptedException {
    if (step.has("append")) {
      List<Event> events = events(step.get("append"));
      append(events, line);
      appended.addAll(events);
    } else if (step.has("assemble")) {
      assemble(step.get("assemble"), line);
    } else if (step.has("resolve_first_pointer")) {
      resolve(line);
    } else if (step.has("error")) {
      fail(step.getAsJsonObject("error"), line);
    } else if (step.has("daemon")) {
      line.add("daemon", step.get("daemon"));
    } else if (step.has("lost")) {
      lose(events(step.get("lost")), line);
    } else {
      throw new IllegalStateException("nothing to do");
    }
  }

  private void append(List<Event> events, JsonObject line) throws InterruptedException {
    AppendEventsRequest.Builder request = AppendEventsRequest.newBuilder().setSessionId(session).addAllEvents(events);
    if (!known.getIncarnation().isEmpty()) {
      request.setKnown(known);
    }
    AppendEventsResponse response = Patience.call(() -> client.appendEvents(request.build()));
    known = response.getMark();
    long duplicates = response.getReceiptsList().stream().filter(EventReceipt::getDuplicate).count();
    line.addProperty("appended", response.getReceiptsCount() - duplicates);
    line.addProperty("duplicates", duplicates);
  }

  /** Appends to a log that was lost, and then all of the conversation again. */
  private void lose(List<Event> events, JsonObject line) throws InterruptedException {
    try {
      append(events, new JsonObject());
      throw new IllegalStateException("the loss of the log was not noticed");
    } catch (StatusRuntimeException e) {
      ApiError lost = ApiError.of(e);
      if (!lost.info().getReason().equals("LOG_LOST")) {
        throw e;
      }
      line.addProperty("reason", lost.info().getReason());
      line.addProperty("field", lost.field());
    }
    known = LogMark.getDefaultInstance();
    held.clear();
    appended.addAll(events);
    append(appended, line);
  }

  private void assemble(JsonElement json, JsonObject line) throws IOException, InterruptedException {
    AssembleContextRequest request = assembleRequest(json);
    HeldContext context = held.computeIfAbsent(request.getFormat(), f -> new HeldContext());
    int sent = Patience.call(() -> context.assemble(client, request));
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

  private void fail(JsonObject expected, JsonObject line) throws IOException, InterruptedException {
    ApiError error;
    try {
      if (expected.has("append")) {
        AppendEventsRequest request =
            parse(expected.get("append"), AppendEventsRequest.newBuilder()).setSessionId(session).build();
        Patience.call(() -> client.appendEvents(request));
      } else {
        // Nothing is held of what fails.
        AssembleContextRequest request = assembleRequest(expected.get("assemble"));
        Patience.call(() -> new HeldContext().assemble(client, request));
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
    AssembleContextRequest.Builder request = parse(json, AssembleContextRequest.newBuilder()).setSessionId(session);
    if (!known.getIncarnation().isEmpty()) {
      request.setKnown(known);
    }
    return request.build();
  }

  private static List<Event> events(JsonElement json) throws IOException {
    List<Event> events = new ArrayList<>();
    for (JsonElement event : json.getAsJsonArray()) {
      events.add(parse(event, Event.newBuilder()).build());
    }
    return events;
  }

  private static <B extends Message.Builder> B parse(JsonElement json, B builder) throws InvalidProtocolBufferException {
    JsonFormat.parser().merge(json.toString(), builder);
    return builder;
  }
}
