package contextd.example;

import contextd.v1.Assembly.AssembleContextRequest;
import contextd.v1.Assembly.IrreduciblePart;
import contextd.v1.BudgetOuterClass.Budget;
import contextd.v1.ContextServiceGrpc.ContextServiceBlockingStub;
import contextd.v1.EventOuterClass.Event;
import contextd.v1.EventOuterClass.Role;
import contextd.v1.FormatOuterClass.Format;
import contextd.v1.Log.AppendEventsRequest;
import contextd.v1.Log.ReadEventsRequest;
import contextd.v1.ProjectionOuterClass.RedactionPointer;
import contextd.v1.ProjectionOuterClass.ResolvePointerRequest;
import io.grpc.StatusRuntimeException;
import java.io.PrintStream;
import java.util.List;

/**
 * A small agent loop: what happens goes into the log, and before each model call the
 * context is assembled from it.
 */
final class Agent {
  private final ContextServiceBlockingStub client;
  private final PrintStream out;
  private final String session = "agent-java-" + System.nanoTime() + "-" + ProcessHandle.current().pid();
  private final HeldContext context = new HeldContext();
  private long head; // the newest event that the agent knows of
  private long budget = 16; // in tokens; too small at first, to show what the daemon says then
  private RedactionPointer pointer;

  Agent(ContextServiceBlockingStub client, PrintStream out) {
    this.client = client;
    this.out = out;
  }

  /** Asks a model that reads files, until it answers. */
  void run() throws InterruptedException {
    append(List.of(
        Model.said("system", Role.ROLE_SYSTEM, List.of(Model.text("You find faults in programs."))),
        Model.said("question", Role.ROLE_USER, List.of(Model.text("Why is the last flag not obeyed?")))));
    Model model = new Model();
    while (true) {
      assemble();
      Model.Response response = model.call(MessagesRequest.of(context, Model.NAME));
      if (model.turns == 2) {
        // What the user says meanwhile goes into the log from elsewhere.
        client.appendEvents(AppendEventsRequest.newBuilder().setSessionId(session)
            .addEvents(Model.said("", Role.ROLE_USER, List.of(Model.text("It worked last week.")))).build());
      }
      append(List.of(response.event("reply-" + model.turns)));
      if (response.calls().isEmpty()) {
        out.println("answer: " + response.text());
        resolve();
        return;
      }
      append(response.calls().stream().map(Model::tool).toList());
    }
  }

  /**
   * Appends after what the agent knows of. Where the log has grown meanwhile, reads what
   * came and appends after it. Can be repeated because events have ids.
   */
  private void append(List<Event> events) throws InterruptedException {
    while (true) {
      try {
        var request = AppendEventsRequest.newBuilder()
            .setSessionId(session).addAllEvents(events).setExpectedHead(head).build();
        head = Patience.call(() -> client.appendEvents(request)).getLastSeq();
        return;
      } catch (StatusRuntimeException e) {
        ApiError error = ApiError.of(e);
        if (!error.info().getReason().equals("HEAD_MISMATCH")) {
          throw e;
        }
        catchUp(Long.parseLong(error.info().getMetadataOrThrow("head_seq")));
      }
    }
  }

  /** Reads what others appended. */
  private void catchUp(long newest) {
    client.readEvents(ReadEventsRequest.newBuilder().setSessionId(session).setFromSeq(head + 1).setToSeq(newest).build())
        .forEachRemaining(response -> {
          for (Event e : response.getEventsList()) {
            head = e.getSeq();
            out.println("meanwhile, event " + head + ": " + e.getMessage().getBlocks(0).getText().getText());
          }
        });
  }

  /**
   * Brings the context up to date. Where it cannot be made to fit, says what cannot be
   * dropped and takes a larger budget.
   */
  private void assemble() throws InterruptedException {
    while (true) {
      try {
        var request = AssembleContextRequest.newBuilder().setSessionId(session)
            .setFormat(Format.FORMAT_ANTHROPIC).setBudget(Budget.newBuilder().setMaxTokens(budget)).build();
        report(Patience.call(() -> context.assemble(client, request)));
        return;
      } catch (StatusRuntimeException e) {
        ApiError error = ApiError.of(e);
        if (error.budgetExceeded().isEmpty() || budget >= 2400) {
          throw e;
        }
        for (IrreduciblePart part : error.budgetExceeded().get().getPartsList()) {
          out.println(budget + " tokens are too few: " + part.getWhat() + " takes " + part.getTokens());
        }
        budget = 2400;
      }
    }
  }

  private void report(int sent) {
    var header = context.header;
    if (header.getProjection().getRedactionPointersCount() > 0) {
      pointer = header.getProjection().getRedactionPointers(0);
    }
    if (header.hasHaveBroken()) {
      var b = header.getHaveBroken();
      out.println("rewritten from message " + b.getIndex() + " on by " + b.getReducer() + ": " + b.getReason());
    }
    out.println(context.messages.size() + " messages, " + sent + " of them new, "
        + header.getBudget().getProjectedTokens() + " tokens");
  }

  /** Gets back a body that gave way to a pointer. */
  private void resolve() {
    HeldContext.require(pointer != null, "no body gave way to a pointer");
    var request = ResolvePointerRequest.newBuilder().setSessionId(session).setPointer(pointer.getPointer()).build();
    String hash = HeldContext.bodyHash(client.resolvePointer(request).getBlock().getToolResult());
    HeldContext.require(hash.equals(pointer.getContentHash()), pointer.getPointer() + " gives back another body");
    out.println(pointer.getPointer() + " is still there: " + pointer.getContentChars() + " characters");
  }
}
