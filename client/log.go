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

// knownSessions is for how many sessions the newest mark is kept.
const knownSessions = 1 << 16

// knownLogs keeps the newest mark of each log that a client appended to, so that the daemon notices
// if the log was lost.
type knownLogs struct {
	marks *recent[string, *contextdv1.LogMark]
}

func newKnownLogs() *knownLogs {
	return &knownLogs{newRecent[string, *contextdv1.LogMark](knownSessions)}
}

// of returns the newest mark of a log; nil if there is none.
func (k *knownLogs) of(sessionID string) *contextdv1.LogMark { return k.marks.get(sessionID) }

// learn keeps the mark of an answer, unless an answer that arrived before it has a newer one.
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

// Append appends all of the events or none. On return they are durable, unless the daemon keeps its
// data in memory only.
//
// Events without an id get one, in copies, so that a repetition appends nothing twice. The error is
// ErrLogLost if the log lacks what this client appended before.
func (c *Client) Append(ctx context.Context, sessionID string, events ...*contextdv1.Event) (*contextdv1.AppendEventsResponse, error) {
	return c.AppendEvents(ctx, &contextdv1.AppendEventsRequest{SessionId: sessionID, Events: events})
}

// AppendEvents is Append with all fields of the request, such as expected_head. If known is set, it
// is sent instead of the client's own mark.
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

// CreateSession makes a session with settings of its own. Append makes one with the defaults.
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

// textOf returns the text of a block. The texts of a result are joined by newlines.
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

// RecordModelCall reports what the provider counted. A report without an idempotency key gets one,
// in a copy, so that a repetition counts nothing twice.
func (c *Client) RecordModelCall(ctx context.Context, req *contextdv1.RecordModelCallRequest, opts ...grpc.CallOption) (*contextdv1.RecordModelCallResponse, error) {
	if req.GetIdempotencyKey() == "" {
		req = proto.CloneOf(cmp.Or(req, &contextdv1.RecordModelCallRequest{}))
		req.IdempotencyKey = uuid.NewString()
	}
	return c.ContextServiceClient.RecordModelCall(ctx, req, opts...)
}

// Record reports what the provider counted for the call with a context: counted has the numbers, and
// perhaps the model. calibration is real tokens / estimated tokens, as estimates use it from now on.
func (c *Client) Record(ctx context.Context, of *Context, counted *contextdv1.RecordModelCallRequest) (calibration float64, err error) {
	if of == nil {
		return 0, errors.New("the context that the model was called with must not be nil")
	}
	own := proto.CloneOf(cmp.Or(counted, &contextdv1.RecordModelCallRequest{}))
	own.SessionId, own.ProjectionId = of.SessionID, of.Header.GetProjectionId()
	resp, err := c.RecordModelCall(ctx, own)
	return resp.GetCalibration(), err
}
