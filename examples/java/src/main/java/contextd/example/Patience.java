package contextd.example;

import io.grpc.StatusRuntimeException;
import java.time.Duration;
import java.util.function.Supplier;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * For how long a call is repeated; docs/clients.md has the rules. A call can be repeated because
 * events have ids.
 */
final class Patience {
  private static final Duration LONGEST_PAUSE = Duration.ofSeconds(2);
  private static final Pattern PART = Pattern.compile("(\\d+(?:\\.\\d+)?)(h|ms|m|s)");
  private static final Duration LIMIT = limit(System.getenv().getOrDefault("CONTEXTD_PATIENCE", ""));

  private Patience() {}

  /** What the call gives, or what its last try throws. */
  static <T> T call(Supplier<T> once) throws InterruptedException {
    long begun = System.nanoTime();
    Duration pause = Duration.ofMillis(100);
    while (true) {
      try {
        return once.get();
      } catch (StatusRuntimeException e) {
        ApiError error = ApiError.of(e);
        if (error.retry().isEmpty() && !error.unanswered()) {
          throw e;
        }
        Duration delay = error.retry().orElse(pause);
        if (Duration.ofNanos(System.nanoTime() - begun).plus(delay).compareTo(LIMIT) > 0) {
          throw e;
        }
        Thread.sleep(delay.toMillis());
        pause = pause.multipliedBy(2).compareTo(LONGEST_PAUSE) < 0 ? pause.multipliedBy(2) : LONGEST_PAUSE;
      }
    }
  }

  /** Seconds (2, 0.5) or a duration such as 1m30s. */
  private static Duration limit(String text) {
    if (text.isEmpty()) {
      return Duration.ofSeconds(30);
    }
    String duration = Character.isDigit(text.charAt(text.length() - 1)) ? text + "s" : text;
    if (!duration.matches("(" + PART + ")+")) {
      throw new IllegalArgumentException(
          "CONTEXTD_PATIENCE: \"" + text + "\" is neither seconds nor a duration such as 1m30s");
    }
    double seconds = 0;
    for (Matcher part = PART.matcher(duration); part.find(); ) {
      double unit = switch (part.group(2)) {
        case "h" -> 3600;
        case "m" -> 60;
        case "s" -> 1;
        default -> 0.001;
      };
      seconds += Double.parseDouble(part.group(1)) * unit;
    }
    return Duration.ofMillis(Math.round(seconds * 1000));
  }
}
