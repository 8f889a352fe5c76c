package demo

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

// held is the context that a client keeps between model calls, so that the daemon only sends new messages.
type held struct {
	messages []*contextdv1.RenderedMessage
	hash     string
	// asOf is the newest event that the context covers.
	asOf uint64
}

// received is an answer of AssembleContext, completed by the messages that were held.
type received struct {
	header *contextdv1.ContextHeader
	// messages are the whole context; sent is how many of them came with this answer.
	messages []*contextdv1.RenderedMessage
	sent     int
	// bytes is the size of the context as JSON lines; common is how many leading bytes it shares with the
	// last context.
	bytes, common int
	// stable is how many leading messages are unchanged; before is how many the last context had, without
	// reminders.
	stable, before int
	// joined is set where the first changed message includes a newer event: harnesses may log a part of a
	// message after the messages that follow it.
	joined bool
	// hash is the hash that the client computed; hashOK says whether it equals the daemon's.
	hash   string
	hashOK bool
}

// changed reports whether a message of the last context was rewritten.
func (r *received) changed() bool { return r.stable < r.before }

// fetch assembles a context, and holds what was received.
func (h *held) fetch(ctx context.Context, api contextdv1.ContextServiceClient, req *contextdv1.AssembleContextRequest) (*received, error) {
	if len(h.messages) > 0 {
		req.Have = &contextdv1.Have{MessageCount: uint32(len(h.messages)), PrefixHash: h.hash}
	}
	req.MessageForm = contextdv1.MessageForm_MESSAGE_FORM_BOTH
	stream, err := api.AssembleContext(ctx, req)
	if err != nil {
		return nil, err
	}
	r := &received{}
	var trailer *contextdv1.ContextTrailer
	for {
		resp, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		switch part := resp.GetPart().(type) {
		case *contextdv1.AssembleContextResponse_Header:
			r.header = part.Header
			if int(part.Header.GetSkippedMessages()) > len(h.messages) {
				return nil, fmt.Errorf("the daemon skipped %d messages of the %d that were held", part.Header.GetSkippedMessages(), len(h.messages))
			}
			r.messages = append(r.messages, h.messages[:part.Header.GetSkippedMessages()]...)
		case *contextdv1.AssembleContextResponse_Chunk:
			r.messages = append(r.messages, part.Chunk.GetMessages()...)
			r.sent += len(part.Chunk.GetMessages())
		case *contextdv1.AssembleContextResponse_Trailer:
			trailer = part.Trailer
		}
	}
	if r.header == nil || trailer == nil {
		return nil, errors.New("the daemon's answer has no header or no trailer")
	}
	r.hash = hashOf(r.messages)
	r.hashOK = r.hash == r.header.GetPrefixHash() && r.hash == trailer.GetContextHash() &&
		len(r.messages) == int(r.header.GetMessageCount())
	r.compare(h.messages, h.asOf)
	h.messages, h.hash, h.asOf = r.messages, r.hash, r.header.GetAsOfSeq()
	return r, nil
}

// hashOf is the context's hash as docs/format.md defines it.
func hashOf(messages []*contextdv1.RenderedMessage) string {
	h := sha256.New()
	for _, m := range messages {
		h.Write(m.GetJson())
		h.Write([]byte("\n"))
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// compare measures the prefix that the context shares with the last one, which covers the events up to asOf.
func (r *received) compare(before []*contextdv1.RenderedMessage, asOf uint64) {
	r.before = len(before)
	// Reminders come last, and newer messages replace them: that does not count as a rewrite.
	for r.before > 0 && before[r.before-1].GetOrigin() == contextdv1.Origin_ORIGIN_REMINDER {
		r.before--
	}
	same := true
	for i, m := range r.messages {
		r.bytes += len(m.GetJson()) + 1
		if !same || i >= len(before) {
			continue
		}
		n := commonPrefix(before[i].GetJson(), m.GetJson())
		r.common += n
		if same = n == len(m.GetJson()) && n == len(before[i].GetJson()); same {
			r.common++ // the line feed
			r.stable++
			continue
		}
		r.joined = slices.ContainsFunc(m.GetSourceSeqs(), func(seq uint64) bool { return seq > asOf })
	}
}

func commonPrefix(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}
