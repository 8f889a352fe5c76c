package assemble

import (
	"context"
	"crypto/sha256"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/records"
	"github.com/contextd/contextd/internal/reduce"
)

// describedBlocks keeps what pointers into groups are about their blocks. Groups never
// change, so a block is hashed once for all requests.
type describedBlocks map[*reduce.Group][]PointerFacts

// facts completes pointers from the groups they point into, which are in the order of
// the pointers. It forgets all other groups.
func (d *describedBlocks) facts(pointers []records.Pointer, groups []*reduce.Group) []PointerFacts {
	out := make([]PointerFacts, 0, len(pointers))
	next := make(describedBlocks, len(*d))
	for _, g := range groups {
		known := (*d)[g]
		for len(out) < len(pointers) {
			p := pointers[len(out)]
			f, ok := find(known, p)
			if !ok {
				if f, ok = describe(g, p); !ok {
					break
				}
				known = append(known, f)
			}
			f.Pointer = p
			out = append(out, f)
		}
		if known != nil {
			next[g] = known
		}
	}
	*d = next
	return out
}

func find(known []PointerFacts, p records.Pointer) (PointerFacts, bool) {
	for _, f := range known {
		if f.Seq == p.Seq && f.Block == p.Block {
			return f, true
		}
	}
	return PointerFacts{}, false
}

func describe(g *reduce.Group, p records.Pointer) (PointerFacts, bool) {
	for m := range g.Messages {
		for _, b := range g.Messages[m].Blocks {
			if b.Seq == p.Seq && b.Index == p.Block {
				return factsOf(p, b.Block), true
			}
		}
	}
	return PointerFacts{}, false
}

func factsOf(p records.Pointer, b eventlog.Block) PointerFacts {
	f := PointerFacts{Pointer: p, Name: reduce.Pointer(p.Seq, p.Block), Chars: reduce.Chars(b)}
	if r, ok := b.(eventlog.ToolResult); ok {
		f.CallID, f.ToolName = r.CallID, r.ToolName
	}
	sum := sha256.Sum256([]byte(reduce.BodyText(b)))
	f.ContentHash = records.HashName(sum[:])
	return f
}

// PointerReader completes pointers of a session's records. It reads the events that they
// name, each once, and for a result without the name of its tool those before it down to
// the call: what it costs does not depend on the length of the log.
type PointerReader struct {
	engine    *Engine
	sessionID string
	known     map[eventlog.Place]PointerFacts
}

// PointerReader returns a reader for pointers of a session.
func (e *Engine) PointerReader(sessionID string) *PointerReader {
	return &PointerReader{e, sessionID, map[eventlog.Place]PointerFacts{}}
}

// Read completes pointers; those to nothing in the log are left out.
func (r *PointerReader) Read(ctx context.Context, pointers []records.Pointer) ([]PointerFacts, error) {
	var event eventlog.Event
	out := make([]PointerFacts, 0, len(pointers))
	for _, p := range pointers {
		f, ok := r.known[eventlog.Place{Seq: p.Seq, Block: p.Block}]
		if !ok {
			if event.Seq != p.Seq {
				var err error
				if event, err = r.engine.event(ctx, r.sessionID, p.Seq); err != nil {
					return nil, err
				}
			}
			blocks := blocksOf(event)
			if p.Block >= len(blocks) {
				continue
			}
			f = factsOf(p, blocks[p.Block])
			if f.CallID != "" && f.ToolName == "" {
				var err error
				if f.ToolName, err = r.toolOf(ctx, f.CallID, p.Seq); err != nil {
					return nil, err
				}
			}
			r.known[eventlog.Place{Seq: p.Seq, Block: p.Block}] = f
		}
		f.Pointer = p
		out = append(out, f)
	}
	return out, nil
}

// toolOf is the tool of the newest call with an id that is not after an event.
func (r *PointerReader) toolOf(ctx context.Context, callID string, to eventlog.Seq) (tool string, err error) {
	for n := eventlog.Seq(8); to > 0 && tool == ""; n *= 2 {
		from := to - min(n, to) + 1
		for event, err := range r.engine.store.Read(ctx, r.sessionID, from, to) {
			if err != nil {
				return "", err
			}
			for _, b := range blocksOf(event) {
				if c, ok := b.(eventlog.ToolCall); ok && c.CallID == callID {
					tool = c.Name
				}
			}
		}
		to = from - 1
	}
	return tool, nil
}
