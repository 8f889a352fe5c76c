package server

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/contextd/contextd/cmd/contextd/internal/wire"
	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// unknownModel returns the name of a model that the daemon does not know; "" if it does, or if there is no name.
func (s *Server) unknownModel(name string) string {
	if _, known := s.models.Lookup(name); known {
		return ""
	}
	return name
}

// CountTokens returns the size of a text or a message, and of tools with them.
func (s *Server) CountTokens(ctx context.Context, req *contextdv1.CountTokensRequest) (*contextdv1.CountTokensResponse, error) {
	name := req.GetTokenizer()
	if name != "" && !slices.Contains(budget.Tokenizers(), name) {
		return nil, &eventlog.InvalidError{Field: "tokenizer", Reason: "must be one of " + strings.Join(budget.Tokenizers(), ", ")}
	}
	unknown := ""
	if name == "" {
		unknown = s.unknownModel(req.GetModel())
		found, err := s.tokenizer(&contextdv1.Budget{Model: req.GetModel()})
		if err != nil {
			return nil, err
		}
		name = found
	}
	format, err := wire.FormatToDomain(req.GetFormat())
	if err != nil {
		return nil, err
	}
	gauge, err := s.gauges(name)
	if err != nil {
		return nil, err
	}
	gauge = format.Gauge(gauge)
	done, err := s.turns.Take(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	body := &eventlog.Message{Role: eventlog.RoleUser, Blocks: []eventlog.Block{eventlog.Text{Text: req.GetText()}}}
	overhead := uint64(0)
	if req.GetMessage() != nil {
		if body, err = wire.MessageToDomain(req.GetMessage()); err != nil {
			return nil, wire.Under("message", err)
		}
		overhead = budget.MessageOverhead
	}
	counts := gauge.CountEvent(eventlog.Event{Body: body})
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	tools := budget.Count{}
	if len(req.GetToolsJson()) > 0 {
		if tools, err = gauge.ToolSchemaTokens(string(req.GetToolsJson())); err != nil {
			if wrong, ok := errors.AsType[*budget.ToolsError](err); ok {
				err = &eventlog.InvalidError{Field: "tools_json", Reason: wrong.Reason}
			}
			return nil, err
		}
	}
	return &contextdv1.CountTokensResponse{
		Tokens: counts.Total() + overhead + uint64(tools.Tokens), Tokenizer: gauge.Tokenizer(), Exact: !counts.Estimated && !tools.Estimated,
		UnknownModel: unknown,
	}, nil
}
