package contextd.example;

import contextd.v1.Assembly.CacheBreakpoint;
import contextd.v1.Assembly.RenderedMessage;
import java.util.ArrayList;
import java.util.List;

/** What of Anthropic's Messages API the loop uses. Content stays as it came. */
record MessagesRequest(String model, int maxTokens, List<String> system, List<ApiMessage> messages) {
  /** A message; content holds its items as JSON. */
  record ApiMessage(String role, List<String> content) {}

  /**
   * The body of the provider's request for what is held. The cache marks are put on
   * copies: the messages that are held are what the daemon's hashes are over.
   */
  static MessagesRequest of(HeldContext held, String model) {
    List<String> system = List.of();
    List<ApiMessage> messages = new ArrayList<>();
    for (RenderedMessage m : held.messages) {
      var members = RawJson.members(m.getJson().toStringUtf8());
      List<String> content = RawJson.items(members.get(m.getSystem() ? "system" : "content"));
      for (CacheBreakpoint b : held.header.getCacheBreakpointsList()) {
        if (b.getMessageIndex() == m.getIndex()) {
          int item = b.hasContentIndex() ? b.getContentIndex() : content.size() - 1;
          String object = content.get(item);
          content.set(item, object.substring(0, object.length() - 1) + ",\"cache_control\":{\"type\":\"ephemeral\"}}");
        }
      }
      if (m.getSystem()) {
        system = content;
      } else {
        String role = members.get("role");
        messages.add(new ApiMessage(role.substring(1, role.length() - 1), content));
      }
    }
    return new MessagesRequest(model, 1024, system, messages);
  }

  /** As it goes over the wire. */
  String json() {
    List<String> all = messages.stream()
        .map(m -> "{\"role\":\"" + m.role() + "\",\"content\":[" + String.join(",", m.content()) + "]}")
        .toList();
    return "{\"model\":\"" + model + "\",\"max_tokens\":" + maxTokens
        + (system.isEmpty() ? "" : ",\"system\":[" + String.join(",", system) + "]")
        + ",\"messages\":[" + String.join(",", all) + "]}";
  }
}
