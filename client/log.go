package client

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/google/uuid"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// knownSessions is of how many sessions the newest mark is known.
const knownSessions = 1 << 16

// knownLogs is what a client knows of the logs that it appended to, so that one that was lost
// is noticed.
type knownLogs struct {
	marks *recent[string, *contextdv1.LogMark]
}

func newKnownLogs() *knownLogs {
	return &knownLogs{newRecent[string, *contextdv1.LogMark](knownSessions)}
}

// of returns what is known of a log; nil: nothing.
func (k *knownLogs) of(sessionID string) *contextdv1.LogMark { return k.marks.get(sessionID) }

// learn takes a mark from an answer. Answers may overtake each other.
func (k *knownLogs) learn(sessionID string, mark *contextdv1.LogMark) {
	if mark.GetIncarnation() == "" {
		return
	}
	k.marks.update(sessionID, func(old *contextdv1.LogMark, known bool) (*contextdv1.LogMark, bool) {
		if known && old.GetIncarnation() == mark.GetIncarnation() && old.GetHeadSeq() > mark.GetHeadSeq() {
			return old, true
		}
		return mark, true
	})
}

func (k *knownLogs) made(s *contextdv1.Session) {
	k.learn(s.GetSessionId(), &contextdv1.LogMark{Incarnation: s.GetIncarnation(), HeadSeq: s.GetHeadSeq(), ChainHead: s.GetChainHead()})
}

// Append appends events, whole or not at all. On return they are durable where the store is.
//
// Events without an id are given one, in copies, so that a repetition appends nothing twice.
// The error is ErrLogLost where the log lacks what this client appended before.
func (c *Client) Append(ctx context.Context, sessionID string, events ...*contextdv1.Event) (*contextdv1.AppendEventsResponse, error) {
	return c.AppendEvents(ctx, &contextdv1.AppendEventsRequest{SessionId: sessionID, Events: events})
}

// AppendEvents is Append for those who set more, such as expected_head. A known mark that is
// set is sent instead of the client's own.
func (c *Client) AppendEvents(ctx context.Context, req *contextdv1.AppendEventsRequest, opts ...grpc.CallOption) (*contextdv1.AppendEventsResponse, error) {
	req = cmp.Or(req, &contextdv1.AppendEventsRequest{})
	own := &contextdv1.AppendEventsRequest{
		SessionId: req.GetSessionId(), Events: make([]*contextdv1.Event, len(req.GetEvents())),
		ExpectedHead: req.ExpectedHead, Known: req.GetKnown(),
	}
	if own.Known == nil {
		own.Known = c.logs.of(own.SessionId)
	}
	for i, e := range req.GetEvents() {
		if e != nil && e.GetEventId() == "" {
			e = proto.CloneOf(e)
			e.EventId = uuid.NewString()
		}
		own.Events[i] = e
	}
	resp, err := c.ContextServiceClient.AppendEvents(ctx, own, opts...)
	if err == nil {
		c.logs.learn(own.SessionId, resp.GetMark())
	}
	return resp, err
}

// CreateSession makes a session with settings of its own. Appending makes one with the defaults.
func (c *Client) CreateSession(ctx context.Context, req *contextdv1.CreateSessionRequest, opts ...grpc.CallOption) (*contextdv1.CreateSessionResponse, error) {
	resp, err := c.ContextServiceClient.CreateSession(ctx, req, opts...)
	if err == nil {
		c.logs.made(resp.GetSession())
	}
	return resp, err
}

// ForkSession makes a session that shares another's events up to a point.
func (c *Client) ForkSession(ctx context.Context, req *contextdv1.ForkSessionRequest, opts ...grpc.CallOption) (*contextdv1.ForkSessionResponse, error) {
	resp, err := c.ContextServiceClient.ForkSession(ctx, req, opts...)
	if err == nil {
		c.logs.made(resp.GetSession())
	}
	return resp, err
}

// DeleteSession deletes a session and what was derived from it. Forks keep what they share.
func (c *Client) DeleteSession(ctx context.Context, req *contextdv1.DeleteSessionRequest, opts ...grpc.CallOption) (*contextdv1.DeleteSessionResponse, error) {
	resp, err := c.ContextServiceClient.DeleteSession(ctx, req, opts...)
	if err == nil {
		c.Forget(req.GetSessionId())
	}
	return resp, err
}

// Forget drops what this client knows of a session: from now on it accepts the session's log as it is.
func (c *Client) Forget(sessionID string) {
	c.held.forget(func(k heldKey) bool { return k.session == sessionID })
	c.logs.marks.forget(func(id string) bool { return id == sessionID })
}

// Recall returns the text of a pointer: what a stub, a clip or a line of the ledger in a context
// replaced. The other contents of the block, such as images, are in ResolvePointer's answer.
func (c *Client) Recall(ctx context.Context, sessionID, pointer string) (string, error) {
	resp, err := c.ResolvePointer(ctx, &contextdv1.ResolvePointerRequest{SessionId: sessionID, Pointer: pointer})
	if err != nil {
		return "", err
	}
	return textOf(resp.GetBlock()), nil
}

// textOf is the text of a block; those of a result are joined by newlines.
func textOf(b *contextdv1.Block) string {
	switch kind := b.GetKind().(type) {
	case *contextdv1.Block_Text:
		return kind.Text.GetText()
	case *contextdv1.Block_ToolCall:
		return string(kind.ToolCall.GetArgumentsJson())
	case *contextdv1.Block_ToolResult:
		var texts []string
		for _, c := range kind.ToolResult.GetContent() {
			if c.GetText() != nil {
				texts = append(texts, c.GetText().GetText())
			}
		}
		return strings.Join(texts, "\n")
	default:
		return ""
	}
}

// RecordModelCall says what the provider counted. A report without an idempotency key is given
// one, in a copy, so that a repetition counts nothing twice.
func (c *Client) RecordModelCall(ctx context.Context, req *contextdv1.RecordModelCallRequest, opts ...grpc.CallOption) (*contextdv1.RecordModelCallResponse, error) {
	if req.GetIdempotencyKey() == "" {
		req = proto.CloneOf(cmp.Or(req, &contextdv1.RecordModelCallRequest{}))
		req.IdempotencyKey = uuid.NewString()
	}
	return c.ContextServiceClient.RecordModelCall(ctx, req, opts...)
}

// Record says what the provider counted for the call that a context was made for: counted has
// the numbers, and perhaps the model. The answer is real tokens / estimated tokens from now on.
func (c *Client) Record(ctx context.Context, of *Context, counted *contextdv1.RecordModelCallRequest) (calibration float64, err error) {
	if of == nil {
		return 0, errors.New("the context that the model was called with must not be nil")
	}
	own := proto.CloneOf(cmp.Or(counted, &contextdv1.RecordModelCallRequest{}))
	own.SessionId, own.ProjectionId = of.SessionID, of.Header.GetProjectionId()
	resp, err := c.RecordModelCall(ctx, own)
	return resp.GetCalibration(), err
}
