package server

import (
	"context"
	"slices"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/render"
)

// restoreCallIDs replaces call ids that a provider's format had to rewrite, and that a runtime then used in results,
// by the log's own. It changes copies of the events.
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
