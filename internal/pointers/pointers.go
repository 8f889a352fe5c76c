// Package pointers finds the blocks of a log that pointers name, and collects facts about them.
package pointers

import (
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/contextd/contextd/internal/harness"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/records"
	"github.com/contextd/contextd/internal/reduce"
)

// Facts is a pointer with what the log says of its block.
type Facts struct {
	records.Pointer
	Name        string // what ResolvePointer takes
	CallID      string
	ToolName    string
	ContentHash string // "sha256:" + hex of the block's text in the log
	Chars       int
}

// Blocks are the blocks of an event that pointers can name: those of a message, or those with which a
// harness's compaction replaces what it dropped.
func Blocks(e eventlog.Event) []eventlog.Block {
	switch b := e.Body.(type) {
	case *eventlog.Message:
		return b.Blocks
	case *eventlog.Compaction:
		return harness.BoundaryOf(b).Blocks
	}
	return nil
}

// Resolve returns the raw block of a pointer and the event it is in.
func Resolve(ctx context.Context, log eventlog.Reader, sessionID, pointer string) (eventlog.Event, eventlog.Block, error) {
	seq, block, err := reduce.ParsePointer(pointer)
	if err != nil {
		return eventlog.Event{}, nil, &eventlog.InvalidError{Field: "pointer", Reason: err.Error()}
	}
	event, err := eventAt(ctx, log, sessionID, seq)
	if err != nil {
		return eventlog.Event{}, nil, err
	}
	blocks := Blocks(event)
	if block >= len(blocks) {
		return eventlog.Event{}, nil, &eventlog.NotFoundError{Kind: "pointer", Name: pointer, There: BlocksThere(event)}
	}
	return event, blocks[block], nil
}

// BlocksThere says which pointers into an event exist.
func BlocksThere(e eventlog.Event) string {
	switch n := len(Blocks(e)); n {
	case 0:
		return fmt.Sprintf("event %d has no blocks", e.Seq)
	case 1:
		return fmt.Sprintf("event %d has %s alone", e.Seq, reduce.Pointer(e.Seq, 0))
	default:
		return fmt.Sprintf("event %d has %s to %s", e.Seq, reduce.Pointer(e.Seq, 0), reduce.Pointer(e.Seq, n-1))
	}
}

func eventAt(ctx context.Context, log eventlog.Reader, sessionID string, seq eventlog.Seq) (eventlog.Event, error) {
	info, err := log.Session(ctx, sessionID)
	if err != nil {
		return eventlog.Event{}, err
	}
	if seq > info.Head {
		return eventlog.Event{}, &eventlog.NotFoundError{Kind: "event", Name: fmt.Sprint(seq), There: eventlog.EventsThere(info.Head)}
	}
	for event, err := range log.Read(ctx, sessionID, seq, seq) {
		return event, err
	}
	return eventlog.Event{}, &eventlog.NotFoundError{Kind: "event", Name: fmt.Sprint(seq)}
}

// Described caches the facts about blocks. Groups never change, so each block is hashed once for all
// requests.
type Described map[*reduce.Group]map[eventlog.Place]Facts

// Facts completes pointers with facts from their groups. Groups must be in the order of the pointers. All
// groups that are not among these are evicted.
func (d *Described) Facts(pointers []records.Pointer, groups []*reduce.Group) []Facts {
	out := make([]Facts, 0, len(pointers))
	next := make(Described, len(*d))
	for _, g := range groups {
		known := (*d)[g]
		var from cursor
		for len(out) < len(pointers) {
			p := pointers[len(out)]
			at := eventlog.Place{Seq: p.Seq, Block: p.Block}
			f, ok := known[at]
			if !ok {
				if f, ok = describe(g, p, &from); !ok {
					break
				}
				if known == nil {
					known = map[eventlog.Place]Facts{}
				}
				known[at] = f
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

// cursor is a position in a group.
type cursor struct{ message, block int }

// describe searches a group for the block of a pointer. The search starts at from, which is then set to the
// position after that block, since most pointers come in order.
func describe(g *reduce.Group, p records.Pointer, from *cursor) (Facts, bool) {
	if p.Seq < g.First || p.Seq > g.Last {
		return Facts{}, false
	}
	for range 2 { // from the place to the end, and from the beginning
		for ; from.message < len(g.Messages); *from = (cursor{from.message + 1, 0}) {
			for blocks := g.Messages[from.message].Blocks; from.block < len(blocks); {
				b := &blocks[from.block]
				from.block++
				if b.Seq == p.Seq && b.Index == p.Block {
					return factsOf(p, b.Block), true
				}
			}
		}
		*from = cursor{}
	}
	return Facts{}, false
}

func factsOf(p records.Pointer, b eventlog.Block) Facts {
	f := Facts{Pointer: p, Name: reduce.Pointer(p.Seq, p.Block), Chars: reduce.Chars(b)}
	if r, ok := b.(eventlog.ToolResult); ok {
		f.CallID, f.ToolName = r.CallID, r.ToolName
	}
	sum := sha256.Sum256([]byte(reduce.BodyText(b)))
	f.ContentHash = records.HashName(sum[:])
	return f
}

// Reader completes pointers of a session's records from the log. It reads each event that pointers name
// once and, for a result that does not name its tool, the events back to its call. So the cost does not
// depend on the length of the log.
type Reader struct {
	log       eventlog.Reader
	sessionID string
	known     map[eventlog.Place]Facts
	calls     calls
}

// NewReader returns a reader for pointers of a session.
func NewReader(log eventlog.Reader, sessionID string) *Reader {
	return &Reader{log: log, sessionID: sessionID, known: map[eventlog.Place]Facts{}}
}

// Read completes pointers. It omits those that name nothing in the log.
func (r *Reader) Read(ctx context.Context, pointers []records.Pointer) ([]Facts, error) {
	// The event of the previous pointer, and its blocks.
	var event eventlog.Event
	var blocks []eventlog.Block
	out := make([]Facts, 0, len(pointers))
	for _, p := range pointers {
		f, ok := r.known[eventlog.Place{Seq: p.Seq, Block: p.Block}]
		if !ok {
			var err error
			if event.Seq != p.Seq {
				if event, err = eventAt(ctx, r.log, r.sessionID, p.Seq); err != nil {
					return nil, err
				}
				blocks = Blocks(event)
			}
			if f, ok, err = r.describe(ctx, blocks, p); err != nil {
				return nil, err
			}
		}
		if ok {
			f.Pointer = p
			out = append(out, f)
		}
	}
	return out, nil
}

// ToolOf returns the tool of a result of event seq; empty if the log has no call of it.
func (r *Reader) ToolOf(ctx context.Context, result eventlog.ToolResult, seq eventlog.Seq) (string, error) {
	if result.CallID == "" || result.ToolName != "" {
		return result.ToolName, nil
	}
	return r.toolOf(ctx, result.CallID, seq)
}

// describe completes a pointer into an event with these blocks, and caches the result; false if the pointer names none
// of them.
func (r *Reader) describe(ctx context.Context, blocks []eventlog.Block, p records.Pointer) (f Facts, ok bool, err error) {
	if p.Block >= len(blocks) {
		return f, false, nil
	}
	f = factsOf(p, blocks[p.Block])
	if result, ok := blocks[p.Block].(eventlog.ToolResult); ok {
		if f.ToolName, err = r.ToolOf(ctx, result, p.Seq); err != nil {
			return f, false, err
		}
	}
	r.known[eventlog.Place{Seq: p.Seq, Block: p.Block}] = f
	return f, true, nil
}
