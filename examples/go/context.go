package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// heldContext is what a client keeps of one session's context in one format: the
// messages' bytes as they came.
type heldContext struct {
	messages []*contextdv1.RenderedMessage
	header   *contextdv1.ContextHeader // of the newest assembly; nil before the first
}

// have says which of the messages the daemon need not send again. Those after
// prefix_messages are gone next time, or joined with others.
func (h *heldContext) have() *contextdv1.Have {
	n := h.header.GetPrefixMessages()
	if n == 0 {
		return nil
	}
	return &contextdv1.Have{MessageCount: n, PrefixHash: hashOf(h.messages[:n])}
}

// assemble brings the messages up to date and checks them. req is completed with what
// is held. What is held stays as it is where an error is returned.
func (h *heldContext) assemble(ctx context.Context, client contextdv1.ContextServiceClient, req *contextdv1.AssembleContextRequest) (sent int, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the stream where the answer is not read to its end
	req.Have = h.have()
	stream, err := client.AssembleContext(ctx, req)
	if err != nil {
		return 0, err
	}
	var header *contextdv1.ContextHeader
	var trailer *contextdv1.ContextTrailer
	var fresh []*contextdv1.RenderedMessage
	for {
		resp, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return 0, err
		}
		switch part := resp.GetPart().(type) {
		case *contextdv1.AssembleContextResponse_Header:
			header = part.Header
		case *contextdv1.AssembleContextResponse_Chunk:
			fresh = append(fresh, part.Chunk.GetMessages()...)
		case *contextdv1.AssembleContextResponse_Trailer:
			trailer = part.Trailer
		}
	}
	skipped := header.GetSkippedMessages()
	if int(skipped) > len(h.messages) {
		return 0, fmt.Errorf("the daemon skips %d messages; %d are held", skipped, len(h.messages))
	}
	// What is not skipped was rewritten, and comes again.
	messages := slices.Concat(h.messages[:skipped], fresh)
	if err := check(messages, req.GetHave(), header, trailer); err != nil {
		return 0, err
	}
	h.messages, h.header = messages, header
	return len(fresh), nil
}

// check holds what was received to what the daemon says of it.
func check(messages []*contextdv1.RenderedMessage, have *contextdv1.Have, header *contextdv1.ContextHeader, trailer *contextdv1.ContextTrailer) error {
	if header == nil || trailer == nil {
		return errors.New("the answer has no header or no trailer")
	}
	if n := uint32(len(messages)); n != header.GetMessageCount() || n != trailer.GetMessageCount() {
		return fmt.Errorf("%d messages; the header says %d, the trailer %d", n, header.GetMessageCount(), trailer.GetMessageCount())
	}
	for i, m := range messages {
		if m.GetIndex() != uint32(i) {
			return fmt.Errorf("message %d says it is %d", i, m.GetIndex())
		}
	}
	hash := hashOf(messages)
	if hash != header.GetContextHash() || hash != trailer.GetContextHash() {
		return fmt.Errorf("the messages hash to %s; the header says %s, the trailer %s", hash, header.GetContextHash(), trailer.GetContextHash())
	}
	if header.GetPrefixMessages() == header.GetMessageCount() && header.GetPrefixHash() != hash {
		return fmt.Errorf("nothing is injected, and the prefix hash is %s, not %s", header.GetPrefixHash(), hash)
	}
	if header.GetHaveBroken() == nil && header.GetSkippedMessages() != have.GetMessageCount() {
		return fmt.Errorf("the prefix is unchanged, and %d of its %d messages are skipped", header.GetSkippedMessages(), have.GetMessageCount())
	}
	return nil
}

// hashOf is contextd's hash over messages: of each its JSON and a newline.
func hashOf(messages []*contextdv1.RenderedMessage) string {
	h := sha256.New()
	for _, m := range messages {
		h.Write(m.GetJson())
		h.Write([]byte("\n"))
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// sizeOf is how many bytes hashOf covers.
func sizeOf(messages []*contextdv1.RenderedMessage) (n int) {
	for _, m := range messages {
		n += len(m.GetJson()) + 1
	}
	return n
}

// bodyHash is the hash of a tool result's text, as a RedactionPointer has it.
func bodyHash(result *contextdv1.ToolResult) string {
	h := sha256.New()
	between := ""
	for _, b := range result.GetContent() {
		if t := b.GetText(); t != nil {
			h.Write([]byte(between + t.GetText()))
			between = "\n"
		}
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}
