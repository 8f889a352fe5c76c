package wire

import (
	"crypto/sha256"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/contextd/contextd/internal/assemble"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/render"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// InjectionsToDomain converts the injections of a request. Errors name the field, beginning with
// "injections[i]".
func InjectionsToDomain(all []*contextdv1.Injection) ([]render.Injection, error) {
	var out []render.Injection
	for i, in := range all {
		path := fmt.Sprintf("injections[%d]", i)
		if err := checkNames(named{path + ".name", in.GetName()}); err != nil {
			return nil, err
		}
		blocks, err := blocksToDomain(path+".blocks", in.GetBlocks())
		if err != nil {
			return nil, err
		}
		out = append(out, render.Injection{Name: in.GetName(), Blocks: blocks, ReserveTokens: in.GetReserveTokens()})
	}
	return out, nil
}

// HaveToDomain converts what the caller already has of the context; nil means nothing.
func HaveToDomain(h *contextdv1.Have) assemble.Have {
	return assemble.Have{MessageCount: int(h.GetMessageCount()), PrefixHash: h.GetPrefixHash()}
}

// AsOfToDomain converts an optional seq.
func AsOfToDomain(seq *uint64) *eventlog.Seq {
	if seq == nil {
		return nil
	}
	out := eventlog.Seq(*seq)
	return &out
}

// Brief removes the fields from a header that AssembleContextRequest.brief omits.
func Brief(h *contextdv1.ContextHeader) {
	h.SessionId, h.Projection = "", nil
	h.GetBudget().TierTokens = nil
}

// HeaderToProto converts everything of a context except its messages.
func HeaderToProto(c *assemble.Context) *contextdv1.ContextHeader {
	out := &contextdv1.ContextHeader{
		SessionId:       c.SessionID,
		AsOfSeq:         uint64(c.AsOf),
		ProjectionId:    c.Projection.ID,
		PrefixHash:      c.PrefixHash,
		ContextHash:     c.ContextHash,
		MessageCount:    uint32(c.MessageCount),
		SkippedMessages: uint32(c.Skipped),
		Projection:      ProjectionToProto(c.Projection, c.Pointers),
		Budget:          BudgetReportToProto(c.Budget),

		PrefixMessages: uint32(c.PrefixMessages),
		PromptCacheKey: c.PromptCacheKey,
	}
	if b := c.Broken; b != nil {
		out.HaveBroken = &contextdv1.PrefixBreak{Index: uint32(b.Index), Reducer: b.Cause, Reason: b.Reason()}
	}
	for i := range c.Messages {
		out.Conversions = append(out.Conversions, conversionsToProto(c.Messages[i].Conversions)...)
	}
	for _, b := range c.Breakpoints {
		out.CacheBreakpoints = append(out.CacheBreakpoints, breakpointToProto(b))
	}
	if c.Cache != (assemble.CacheReport{}) {
		out.Cache = &contextdv1.CacheReport{
			StableMessages: uint32(c.Cache.StableMessages),
			StableTokens:   c.Cache.StableTokens,
			BrokenBy:       c.Cache.BrokenBy,
		}
	}
	return out
}

// TrailerToProto converts the end of a context.
func TrailerToProto(c *assemble.Context) *contextdv1.ContextTrailer {
	return &contextdv1.ContextTrailer{MessageCount: uint32(c.MessageCount), ContextHash: c.ContextHash}
}

var originsToProto = map[render.Origin]contextdv1.Origin{
	render.Verbatim: contextdv1.Origin_ORIGIN_VERBATIM,
	render.Stubbed:  contextdv1.Origin_ORIGIN_STUBBED,
	render.Clipped:  contextdv1.Origin_ORIGIN_CLIPPED,
	render.Redacted: contextdv1.Origin_ORIGIN_REDACTED,
	render.Summary:  contextdv1.Origin_ORIGIN_SUMMARY,
	render.Reminder: contextdv1.Origin_ORIGIN_REMINDER,
	render.Injected: contextdv1.Origin_ORIGIN_INJECTION,
}

// RenderedToProto converts the message at an index of the whole context, in the requested form. The result
// shares m's JSON.
func RenderedToProto(index int, m assemble.Message, form contextdv1.MessageForm) *contextdv1.RenderedMessage {
	out := &contextdv1.RenderedMessage{
		Index:  uint32(index),
		Origin: originsToProto[m.Origin],
		Tokens: uint32(m.Tokens),
		Cause:  m.Cause,
		System: m.System,
	}
	if form != contextdv1.MessageForm_MESSAGE_FORM_VALUE {
		out.Json = m.JSON
	}
	if form == contextdv1.MessageForm_MESSAGE_FORM_VALUE || form == contextdv1.MessageForm_MESSAGE_FORM_BOTH {
		out.Message = &contextdv1.Message{Role: rolesToProto[m.Role], Blocks: blocksToProto(m.Blocks)}
	}
	for _, seq := range m.Seqs {
		out.SourceSeqs = append(out.SourceSeqs, uint64(seq))
	}
	return out
}

// RequestDigest identifies what a request with an idempotency key asks for; nil if it has no key. Requests
// with the same digest lead to the same projection. It omits the session and the key, which are used to look
// it up, and options for how the answer is sent. It also omits the daemon's configuration, so that a request
// may be repeated after that has changed.
func RequestDigest(req *contextdv1.AssembleContextRequest) ([]byte, error) {
	if req.GetIdempotencyKey() == "" {
		return nil, nil
	}
	asked := &contextdv1.AssembleContextRequest{
		AsOfSeq: req.AsOfSeq, Budget: req.GetBudget(), Policy: req.GetPolicy(), Format: req.GetFormat(), Injections: req.GetInjections(),
	}
	encoded, err := proto.MarshalOptions{Deterministic: true}.Marshal(asked)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(encoded)
	return sum[:], nil
}
