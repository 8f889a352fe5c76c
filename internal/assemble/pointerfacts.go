package assemble

import (
	"crypto/sha256"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/projection"
	"github.com/contextd/contextd/internal/reduce"
)

// describedBlocks keeps what pointers into groups tell of their blocks. Groups never
// change, so a block is hashed once for all requests.
type describedBlocks map[*reduce.Group][]PointerFacts

// facts completes pointers from the groups they point into, which are in the order of
// the pointers. It forgets all other groups.
func (d *describedBlocks) facts(pointers []projection.Pointer, groups []*reduce.Group) []PointerFacts {
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

func find(known []PointerFacts, p projection.Pointer) (PointerFacts, bool) {
	for _, f := range known {
		if f.Seq == p.Seq && f.Block == p.Block {
			return f, true
		}
	}
	return PointerFacts{}, false
}

func describe(g *reduce.Group, p projection.Pointer) (PointerFacts, bool) {
	for m := range g.Messages {
		for _, b := range g.Messages[m].Blocks {
			if b.Seq == p.Seq && b.Index == p.Block {
				f := PointerFacts{Pointer: p, Name: reduce.Pointer(p.Seq, p.Block), Chars: reduce.Chars(b.Block)}
				if r, ok := b.Block.(eventlog.ToolResult); ok {
					f.CallID, f.ToolName = r.CallID, r.ToolName
				}
				sum := sha256.Sum256([]byte(reduce.BodyText(b.Block)))
				f.ContentHash = projection.HashName(sum[:])
				return f, true
			}
		}
	}
	return PointerFacts{}, false
}
