package contextd.example;

import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import com.google.protobuf.ByteString;
import contextd.v1.EventOuterClass.Block;
import contextd.v1.EventOuterClass.Event;
import contextd.v1.EventOuterClass.Message;
import contextd.v1.EventOuterClass.Role;
import contextd.v1.EventOuterClass.Text;
import contextd.v1.EventOuterClass.ToolCall;
import contextd.v1.EventOuterClass.ToolResult;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/** Stands for the provider and for the tools: reads files until all are seen. */
final class Model {
  static final String NAME = "claude-sonnet-4-5";

  int turns;

  record ToolUse(String id, String name, String input) {}

  record Response(String text, List<ToolUse> calls) {
    /** What the model said, for the log: the arguments as the bytes it wrote. */
    Event event(String id) {
      List<Block> blocks = new ArrayList<>(List.of(Model.text(text)));
      for (ToolUse c : calls) {
        blocks.add(Block.newBuilder().setToolCall(ToolCall.newBuilder()
            .setCallId(c.id()).setName(c.name()).setArgumentsJson(ByteString.copyFromUtf8(c.input()))).build());
      }
      Event.Builder said = said(id, Role.ROLE_ASSISTANT, blocks).toBuilder();
      said.getMessageBuilder().setModel(NAME);
      return said.build();
    }
  }

  /** Answers, or refuses what the provider would refuse. */
  Response call(MessagesRequest request) {
    wellFormed(JsonParser.parseString(request.json()).getAsJsonObject());
    turns++;
    if (turns > 6) {
      return new Response("The flag is parsed twice; the second time wins.", List.of());
    }
    List<ToolUse> calls = new ArrayList<>();
    for (int part = 0; part <= turns % 2; part++) {
      calls.add(new ToolUse("toolu_" + turns + "_" + part, "read",
          "{\"path\": \"src/part" + turns + ".go\", \"from\": " + part * 20 + ".0}"));
    }
    return new Response("I read part " + turns + ".", calls);
  }

  /** A small part of the provider's rules: roles alternate, calls are answered at once. */
  private static void wellFormed(JsonObject request) {
    Set<String> open = new HashSet<>();
    String role = "assistant";
    for (var element : request.getAsJsonArray("messages")) {
      JsonObject message = element.getAsJsonObject();
      String next = message.get("role").getAsString();
      HeldContext.require(!next.equals(role) && Set.of("user", "assistant").contains(next), next + " after " + role);
      role = next;
      for (var content : message.getAsJsonArray("content")) {
        JsonObject item = content.getAsJsonObject();
        switch (item.get("type").getAsString()) {
          case "tool_use" -> open.add(item.get("id").getAsString());
          case "tool_result" ->
              HeldContext.require(open.remove(item.get("tool_use_id").getAsString()), "a result answers no open call");
          default -> {}
        }
      }
      HeldContext.require(role.equals("assistant") || open.isEmpty(), open + " have no result");
    }
    HeldContext.require(role.equals("user"), "the last message must be the user's");
  }

  /** Answers a call: the result's event, for the log. */
  static Event tool(ToolUse call) {
    JsonObject args = JsonParser.parseString(call.input()).getAsJsonObject();
    StringBuilder body = new StringBuilder();
    for (int i = 0; i < 60; i++) {
      body.append(args.get("path").getAsString()).append(':').append((int) args.get("from").getAsDouble() + i)
          .append(": flags.Bool(\"flag").append(i).append("\", false, \"what it does\")\n");
    }
    Block result = Block.newBuilder()
        .setToolResult(ToolResult.newBuilder().setCallId(call.id()).addContent(text(body.toString()))).build();
    return said("result-" + call.id(), Role.ROLE_TOOL, List.of(result));
  }

  static Event said(String id, Role role, List<Block> blocks) {
    return Event.newBuilder().setEventId(id).setMessage(Message.newBuilder().setRole(role).addAllBlocks(blocks)).build();
  }

  static Block text(String text) {
    return Block.newBuilder().setText(Text.newBuilder().setText(text)).build();
  }
}
