package contextd.example;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Takes valid JSON apart without touching what it is made of: numbers, escapes and
 * repeated members of a tool's arguments stay as they were written.
 */
final class RawJson {
  private RawJson() {}

  /** The members of an object, by their names as they are written, without quotes. */
  static Map<String, String> members(String object) {
    Map<String, String> members = new LinkedHashMap<>();
    for (String member : split(object)) {
      int end = skipString(member, 0);
      int colon = member.indexOf(':', end);
      members.put(member.substring(1, end - 1), member.substring(colon + 1).strip());
    }
    return members;
  }

  /** The items of an array. */
  static List<String> items(String array) {
    return split(array);
  }

  /** What is between the commas of an array or an object. */
  private static List<String> split(String json) {
    List<String> parts = new ArrayList<>();
    int depth = 0;
    int start = 1;
    for (int i = 0; i < json.length(); i++) {
      switch (json.charAt(i)) {
        case '"' -> i = skipString(json, i) - 1;
        case '{', '[' -> depth++;
        case '}', ']' -> depth--;
        case ',' -> {
          if (depth == 1) {
            parts.add(json.substring(start, i).strip());
            start = i + 1;
          }
        }
        default -> {}
      }
    }
    String last = json.substring(start, json.length() - 1).strip();
    if (!last.isEmpty()) {
      parts.add(last);
    }
    return parts;
  }

  /** The place after the string that begins here. */
  private static int skipString(String json, int at) {
    for (int i = at + 1; ; i++) {
      switch (json.charAt(i)) {
        case '\\' -> i++;
        case '"' -> {
          return i + 1;
        }
        default -> {}
      }
    }
  }
}
