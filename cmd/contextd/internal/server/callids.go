package server

import (
	"context"
	"slices"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/render"
)

// restoreCallIDs gives results the call ids of the log where the runtime took them from
// a provider's format, in which some are others. Events that it changes are changed in
// copies.
func (s *Server) restoreCallIDs(ctx context.Context, id, tokenizer string, events []eventlog.Event) error {
	made := map[string]bool{} // by calls of the batch itself
	for i := range events {
		m, ok := events[i].Body.(*eventlog.Message)
		if !ok {
			continue
		}
		for j, block := range m.Blocks {
			switch b := block.(type) {
			case eventlog.ToolCall:
				made[b.CallID] = true
			case eventlog.ToolResult:
				if made[b.CallID] || !render.MappedCallID(b.CallID) {
					continue
				}
				original, known, err := s.engine.CallID(ctx, id, tokenizer, b.CallID)
				if err != nil {
					return err
				}
				if known {
					b.CallID = original
					changed := *m
					changed.Blocks = slices.Clone(m.Blocks)
					changed.Blocks[j] = b
					m = &changed
					events[i].Body = m
				}
			}
		}
	}
	return nil
}
