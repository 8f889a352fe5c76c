package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"golang.org/x/sync/semaphore"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

const (
	// longestRequest is for one request over HTTP. The arguments of a tool are at most 64 KiB.
	longestRequest = 256 << 10
	// longestBatch is how many messages a batch may have. For each the SDK starts a goroutine, and it keeps each
	// answer in memory until all are complete.
	longestBatch = 32
	// requestsAtOnce bounds the requests that are handled at once, in bytes. Decoded they take up to thirty times as
	// much.
	requestsAtOnce = 2 << 20
	// callsAtOnce is how many calls are sent to the daemon at once, which accepts 512 from a client.
	callsAtOnce = 64
)

// turns limits how many calls are sent to a daemon at once.
type turns struct {
	contextdv1.ContextServiceClient
	free *semaphore.Weighted
}

func (t turns) CallRecallTool(ctx context.Context, req *contextdv1.CallRecallToolRequest, o ...grpc.CallOption) (*contextdv1.CallRecallToolResponse, error) {
	if err := t.free.Acquire(ctx, 1); err != nil {
		return nil, status.Error(codes.ResourceExhausted, "other calls took too long")
	}
	defer t.free.Release(1)
	return t.ContextServiceClient.CallRecallTool(ctx, req, o...)
}

// bounded reads requests before the SDK does, and refuses those that would cost it too much, and those that it would
// answer with another id.
func bounded(next http.Handler) http.Handler {
	free := semaphore.NewWeighted(requestsAtOnce)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, longestRequest))
		if tooLong := (*http.MaxBytesError)(nil); errors.As(err, &tooLong) {
			http.Error(w, fmt.Sprintf("a request must be at most %d bytes", longestRequest), http.StatusRequestEntityTooLarge)
			return
		} else if err != nil {
			http.Error(w, "the request could not be read", http.StatusBadRequest)
			return
		}
		size := int64(len(body))
		if free.Acquire(r.Context(), size) != nil {
			return // nobody waits for the answer any more
		}
		defer free.Release(size)
		if refusal := refused(body); refusal != "" {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			_ = json.NewEncoder(w).Encode(map[string]any{ // or nobody reads it
				"jsonrpc": "2.0", "id": nil, "error": map[string]any{"code": jsonrpc.CodeInvalidRequest, "message": refusal},
			})
			return
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), size
		next.ServeHTTP(w, r)
	})
}

// refused returns why a request is refused; empty if it is not. The SDK refuses bodies that are not JSON.
func refused(body []byte) string {
	messages := []json.RawMessage{body}
	if text := bytes.TrimSpace(body); len(text) > 0 && text[0] == '[' {
		messages = nil // what is in it would be written over
		if json.Unmarshal(text, &messages) != nil {
			return ""
		}
		if len(messages) > longestBatch {
			return fmt.Sprintf("a batch must have at most %d messages; it has %d", longestBatch, len(messages))
		}
	}
	for _, m := range messages {
		if msg, err := jsonrpc.DecodeMessage(m); err == nil && (line{text: m}).lostID(msg) != nil {
			return wrongID
		}
	}
	return ""
}
