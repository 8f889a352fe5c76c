package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"
	"time"

	"google.golang.org/grpc/status"

	"github.com/contextd/contextd/internal/evaluate"
	eventlog "github.com/contextd/contextd/internal/log"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// client acts as an agent runtime: it keeps the messages that it received, and asks only for new ones.
type client struct {
	api       contextdv1.ContextServiceClient
	sessionID string
	budget    *contextdv1.Budget
	policy    *contextdv1.Policy // nil for the daemon's default
	held      []*contextdv1.RenderedMessage
}

// answer is an assembled context, completed from what the client held.
type answer struct {
	header   *contextdv1.ContextHeader
	messages []*contextdv1.RenderedMessage
	// refused is set instead of the context if it does not fit the budget.
	refused *contextdv1.BudgetExceeded
	// took is the time from the request to the answer's last byte.
	took time.Duration
}

func (c *client) append(ctx context.Context, events []*contextdv1.Event) error {
	_, err := c.api.AppendEvents(ctx, &contextdv1.AppendEventsRequest{SessionId: c.sessionID, Events: events})
	return err
}

// assemble asks for the context, naming what the client holds, and checks the hash of the result. With keep
// the client holds the result.
func (c *client) assemble(ctx context.Context, req *contextdv1.AssembleContextRequest, keep bool) (answer, error) {
	req.SessionId, req.Budget, req.Policy = c.sessionID, c.budget, c.policy
	req.MessageForm = contextdv1.MessageForm_MESSAGE_FORM_BOTH
	if len(c.held) > 0 {
		req.Have = &contextdv1.Have{MessageCount: uint32(len(c.held)), PrefixHash: hashOf(c.held)}
	}
	asked := time.Now()
	stream, err := c.api.AssembleContext(ctx, req)
	if err != nil {
		return answer{}, err
	}
	var a answer
	for {
		part, err := stream.Recv()
		a.took = time.Since(asked)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			for _, d := range status.Convert(err).Details() {
				if exceeded, ok := d.(*contextdv1.BudgetExceeded); ok {
					return answer{refused: exceeded, took: a.took}, nil
				}
			}
			return answer{}, err
		}
		if h := part.GetHeader(); h != nil {
			a.header = h
			a.messages = c.held[:h.GetSkippedMessages():h.GetSkippedMessages()]
		}
		a.messages = append(a.messages, part.GetChunk().GetMessages()...)
	}
	if got := hashOf(a.messages); got != a.header.GetPrefixHash() {
		return a, fmt.Errorf("prefix_hash is %s and the client's own is %s", a.header.GetPrefixHash(), got)
	}
	if n := int(a.header.GetMessageCount()); n != len(a.messages) {
		return a, fmt.Errorf("message_count is %d and the client holds %d", n, len(a.messages))
	}
	if keep {
		c.held = a.messages
	}
	return a, nil
}

func hashOf(messages []*contextdv1.RenderedMessage) string {
	h := sha256.New()
	for _, m := range messages {
		writeLine(h, m)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

func writeLine(h hash.Hash, m *contextdv1.RenderedMessage) {
	h.Write(m.GetJson())
	h.Write([]byte{'\n'})
}

// rendered is the context in the form that is measured.
func (a answer) rendered() evaluate.Prompt {
	var json bytes.Buffer
	var text strings.Builder
	out := evaluate.Prompt{Tokens: a.header.GetBudget().GetProjectedTokens(), Cause: a.header.GetCache().GetBrokenBy(), Hash: a.header.GetPrefixHash()}
	for _, m := range a.messages {
		json.Write(m.GetJson())
		json.WriteByte('\n')
		for _, b := range m.GetMessage().GetBlocks() {
			text.WriteString(evaluate.Plain(blockOf(b)))
			text.WriteByte(0)
		}
		out.Visible += visibleCalls(m)
	}
	out.JSON, out.Text = json.Bytes(), text.String()
	return out
}

// blockOf converts a block for package evaluate.
func blockOf(b *contextdv1.Block) eventlog.Block {
	switch k := b.GetKind().(type) {
	case *contextdv1.Block_Text:
		return eventlog.Text{Text: k.Text.GetText()}
	case *contextdv1.Block_Thinking:
		return eventlog.Thinking{Text: k.Thinking.GetText()}
	case *contextdv1.Block_ToolCall:
		return eventlog.ToolCall{Name: k.ToolCall.GetName(), Arguments: string(k.ToolCall.GetArgumentsJson())}
	case *contextdv1.Block_ToolResult:
		var r eventlog.ToolResult
		for _, c := range k.ToolResult.GetContent() {
			r.Content = append(r.Content, blockOf(c))
		}
		return r
	case *contextdv1.Block_Provider:
		return eventlog.ProviderBlock{JSON: string(k.Provider.GetJson())}
	default:
		return nil
	}
}
