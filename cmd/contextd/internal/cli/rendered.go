package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// rendered is a recorded projection and the messages rebuilt from it.
type rendered struct {
	replay   *contextdv1.ReplayProjectionResponse
	messages []*contextdv1.RenderedMessage
}

// render rebuilds the messages of a projection; "" is the newest.
func render(ctx context.Context, api api, session, projection string) (rendered, error) {
	out, err := rebuild(ctx, api, session, projection)
	if status.Code(err) == codes.NotFound {
		recorded, missing := api.ListProjections(ctx, &contextdv1.ListProjectionsRequest{SessionId: session, PageSize: 1})
		if missing == nil && len(recorded.GetProjections()) == 0 {
			return out, status.Errorf(codes.NotFound, "no projection of %s is recorded yet; contextd assemble %s records one", session, session)
		}
	}
	return out, err
}

func rebuild(ctx context.Context, api api, session, projection string) (rendered, error) {
	stream, err := api.RenderProjection(ctx, &contextdv1.RenderProjectionRequest{
		SessionId: session, ProjectionId: projection, MessageForm: contextdv1.MessageForm_MESSAGE_FORM_BOTH,
	})
	if err != nil {
		return rendered{}, err
	}
	var out rendered
	for {
		resp, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF) && out.replay != nil:
			return out, nil
		case errors.Is(err, io.EOF):
			return out, errors.New("the daemon did not say what it replayed")
		case err != nil:
			return out, err
		case resp.GetReplay() != nil:
			out.replay = resp.GetReplay()
		default:
			out.messages = append(out.messages, resp.GetChunk().GetMessages()...)
		}
	}
}

// check returns an error if the rebuilt messages differ from those that were sent.
func (r rendered) check() error {
	if r.replay.GetSame() {
		return nil
	}
	return fmt.Errorf("projection %s is not what it was: %s; its messages are those made now", r.id(), r.replay.GetDifference())
}

func (r rendered) id() string { return r.replay.GetRecorded().GetProjectionId() }

func (r rendered) tokens() uint64 {
	var n uint64
	for _, m := range r.messages {
		n += uint64(m.GetTokens())
	}
	return n
}

// reasons are the projection's reasons for changing blocks, by event.
func (r rendered) reasons() map[uint64]string {
	out := map[uint64]string{}
	for _, p := range r.replay.GetReplayed().GetRedactionPointers() {
		if p.GetReason() != "" && !strings.Contains(out[p.GetSourceSeq()], p.GetReason()) {
			out[p.GetSourceSeq()] = strings.TrimPrefix(out[p.GetSourceSeq()]+"; "+p.GetReason(), "; ")
		}
	}
	return out
}

// messageView is a message as the audit commands write it.
type messageView struct {
	Index  uint32   `json:"index"`
	Role   string   `json:"role"`
	Origin string   `json:"origin"`
	Cause  string   `json:"cause,omitempty"`
	Reason string   `json:"reason,omitempty"`
	Seqs   []uint64 `json:"source_seqs,omitempty"`
	Tokens uint32   `json:"tokens"`
	Line   string   `json:"line"`
}

func (r rendered) view(i int, reasons map[uint64]string) *messageView {
	m := r.messages[i]
	v := &messageView{
		Index:  m.GetIndex(),
		Role:   strings.ToLower(strings.TrimPrefix(m.GetMessage().GetRole().String(), "ROLE_")),
		Origin: strings.ToLower(strings.TrimPrefix(m.GetOrigin().String(), "ORIGIN_")),
		Cause:  m.GetCause(),
		Seqs:   m.GetSourceSeqs(),
		Tokens: m.GetTokens(),
		Line:   strings.TrimSpace(oneLine(describeBlocks(m.GetMessage().GetBlocks()), contentRunes)),
	}
	for _, seq := range v.Seqs {
		if reasons[seq] != "" && v.Cause != "" {
			v.Reason = reasons[seq]
			break
		}
	}
	return v
}

// mark is "~" for a changed message and "+" for one that contextd wrote.
func (v *messageView) mark() string {
	switch {
	case v.Origin == "summary":
		return "+"
	case v.Origin == "reminder", v.Cause == "":
		return ""
	default:
		return "~"
	}
}

// String is the message on one line, beginning with what was done to it.
func (v *messageView) String() string {
	if v == nil {
		return ""
	}
	what := v.Role
	if v.Origin != "verbatim" {
		what += ", " + v.Origin
	}
	if v.Cause != "" {
		what += " by " + v.Cause
	}
	if v.Reason != "" {
		what += " (" + v.Reason + ")"
	}
	return fmt.Sprintf("%6d  %s: %s", v.Tokens, what, v.Line)
}

// seqsText writes a list of events, runs as FIRST-LAST.
func seqsText(seqs []uint64) string {
	var parts []string
	for i := 0; i < len(seqs); {
		j := i
		for j+1 < len(seqs) && seqs[j+1] == seqs[j]+1 {
			j++
		}
		parts = append(parts, decision{from: seqs[i], to: seqs[j]}.events())
		i = j + 1
	}
	return strings.Join(parts, ",")
}

// seqSet makes a set of events.
func seqSet(lists ...[]uint64) map[uint64]bool {
	out := map[uint64]bool{}
	for _, seq := range slices.Concat(lists...) {
		out[seq] = true
	}
	return out
}
