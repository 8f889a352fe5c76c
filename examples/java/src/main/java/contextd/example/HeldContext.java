package contextd.example;

import contextd.v1.Assembly.AssembleContextRequest;
import contextd.v1.Assembly.AssembleContextResponse;
import contextd.v1.Assembly.ContextHeader;
import contextd.v1.Assembly.ContextTrailer;
import contextd.v1.Assembly.Have;
import contextd.v1.Assembly.RenderedMessage;
import contextd.v1.ContextServiceGrpc.ContextServiceBlockingStub;
import contextd.v1.EventOuterClass.Block;
import contextd.v1.EventOuterClass.ToolResult;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.Iterator;
import java.util.List;
import java.util.stream.Collectors;

/** What a client keeps of one session's context in one format: the bytes as they came. */
final class HeldContext {
  List<RenderedMessage> messages = List.of();

  /** Of the newest assembly. */
  ContextHeader header = ContextHeader.getDefaultInstance();

  /**
   * Brings the messages up to date and checks them. What is held stays as it is where an
   * exception is thrown.
   *
   * @return how many messages were sent
   */
  int assemble(ContextServiceBlockingStub client, AssembleContextRequest request) {
    // Messages after prefix_messages are gone next time, or joined with others.
    int had = header.getPrefixMessages();
    if (had > 0) {
      Have have = Have.newBuilder().setMessageCount(had).setPrefixHash(hashOf(messages.subList(0, had))).build();
      request = request.toBuilder().setHave(have).build();
    }
    ContextHeader got = null;
    ContextTrailer trailer = null;
    List<RenderedMessage> fresh = new ArrayList<>();
    Iterator<AssembleContextResponse> responses = client.assembleContext(request);
    while (responses.hasNext()) {
      AssembleContextResponse part = responses.next();
      switch (part.getPartCase()) {
        case HEADER -> got = part.getHeader();
        case CHUNK -> fresh.addAll(part.getChunk().getMessagesList());
        case TRAILER -> trailer = part.getTrailer();
        default -> {}
      }
    }
    if (got == null || trailer == null) {
      throw new IllegalStateException("the answer has no header or no trailer");
    }
    require(got.getSkippedMessages() <= messages.size(), "more messages are skipped than held");
    // What is not skipped was rewritten, and comes again.
    List<RenderedMessage> all = new ArrayList<>(messages.subList(0, got.getSkippedMessages()));
    all.addAll(fresh);
    check(all, had, got, trailer);
    messages = all;
    header = got;
    return fresh.size();
  }

  /** Holds what was received to what the daemon says of it. */
  private static void check(List<RenderedMessage> all, int had, ContextHeader header, ContextTrailer trailer) {
    int n = all.size();
    require(n == header.getMessageCount() && n == trailer.getMessageCount(), n + " messages are not what was announced");
    for (int i = 0; i < n; i++) {
      require(all.get(i).getIndex() == i, "message " + i + " says it is " + all.get(i).getIndex());
    }
    String hash = hashOf(all);
    require(hash.equals(header.getContextHash()) && hash.equals(trailer.getContextHash()),
        "the messages hash to " + hash + "; the header says " + header.getContextHash());
    require(header.getPrefixMessages() != n || hash.equals(header.getPrefixHash()),
        "nothing is injected, and the prefix hash is " + header.getPrefixHash());
    require(header.hasHaveBroken() || header.getSkippedMessages() == had,
        "the prefix is unchanged, and " + header.getSkippedMessages() + " of " + had + " are skipped");
  }

  static void require(boolean holds, String otherwise) {
    if (!holds) {
      throw new IllegalStateException(otherwise);
    }
  }

  /** contextd's hash over messages: of each its JSON and a newline. */
  static String hashOf(List<RenderedMessage> messages) {
    MessageDigest digest = sha256();
    for (RenderedMessage m : messages) {
      digest.update(m.getJson().asReadOnlyByteBuffer());
      digest.update((byte) '\n');
    }
    return named(digest);
  }

  /** How many bytes {@link #hashOf} covers. */
  static long sizeOf(List<RenderedMessage> messages) {
    return messages.stream().mapToLong(m -> m.getJson().size() + 1).sum();
  }

  /** The hash of a tool result's text, as a RedactionPointer has it. */
  static String bodyHash(ToolResult result) {
    String body = result.getContentList().stream()
        .filter(Block::hasText)
        .map(b -> b.getText().getText())
        .collect(Collectors.joining("\n"));
    MessageDigest digest = sha256();
    digest.update(body.getBytes(StandardCharsets.UTF_8));
    return named(digest);
  }

  private static String named(MessageDigest digest) {
    return "sha256:" + HexFormat.of().formatHex(digest.digest());
  }

  private static MessageDigest sha256() {
    try {
      return MessageDigest.getInstance("SHA-256");
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("every Java platform has SHA-256", e);
    }
  }
}
