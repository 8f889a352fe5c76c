package projection

import (
	"sync"

	"github.com/contextd/contextd/internal/ledger"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/projection/reference"
	"github.com/contextd/contextd/internal/reduce"
)

// nameIndex knows which results hold which names. It is filled as groups come and
// forgets those that were dropped, so that an answer takes time by what is new and by what
// the roots name, not by what was ever said. It holds nothing that the groups do not give
// again.
type nameIndex struct {
	ids     map[string]int32
	names   []string
	holders [][]int32 // by name: indexes in results
	results []heldResult
	groups  map[*reduce.Group]*heldGroup
	pass    uint32 // counts the views that were followed
	mu      sync.Mutex
}

// heldGroup is what is known of a group.
type heldGroup struct {
	// results are those of the group's calls, in their order, by index in
	// nameIndex.results; -1 for a call without a result.
	results []int32
	// said are the names in what the group's messages say and in the arguments of its
	// calls, and what they quote; made when first asked for.
	said     []string
	saidMade bool
}

// heldResult is what is known of a result.
type heldResult struct {
	call           *reduce.Call
	chars          int
	names          []int32 // those in its body, none twice
	failed, writes bool
	// opaque is set where the content holds something other than text, of which nobody
	// can say whether it is referred to; sealed where that is a provider's own block.
	opaque, sealed bool
	// pointer is what is in its place; made when first needed.
	pointer *reduce.Prepared

	// What follows is of the pass in which it was set.

	seen uint32 // in which it was in the view
	pass uint32 // in which it may be dropped, and so be reached
	// reached is the pass in which a root named it, by which name, and whether that
	// brings it back where it was redacted.
	reached uint32
	by      int32
	back    bool
	// redacted and restored are what the state says of it, and fate what is decided.
	redacted, restored bool
	fate               fate
}

func newNameIndex() *nameIndex {
	return &nameIndex{ids: map[string]int32{}, groups: map[*reduce.Group]*heldGroup{}}
}

// follow takes in the groups of a view that it does not know yet, forgets the others
// once they are the most, and returns what is known of each.
func (x *nameIndex) follow(v reduce.View) []*heldGroup {
	const slack = 64
	if len(x.groups) > 2*v.Len()+slack {
		x.ids, x.names, x.holders, x.results, x.groups = map[string]int32{}, nil, nil, nil, map[*reduce.Group]*heldGroup{}
	}
	x.pass++
	held := make([]*heldGroup, v.Len())
	for i := range held {
		if v.Ended() != nil {
			return nil
		}
		g := v.Group(i)
		if held[i] = x.groups[g]; held[i] == nil {
			held[i] = x.add(g)
			x.groups[g] = held[i]
		}
	}
	return held
}

func (x *nameIndex) add(g *reduce.Group) *heldGroup {
	known := &heldGroup{results: make([]int32, len(g.Calls))}
	for c := range g.Calls {
		call := &g.Calls[c]
		known.results[c] = -1
		if call.Interrupted {
			continue
		}
		known.results[c] = int32(len(x.results))
		x.results = append(x.results, x.hold(g, call))
	}
	return known
}

func (x *nameIndex) hold(g *reduce.Group, call *reduce.Call) heldResult {
	m := &g.Messages[call.Result]
	r := heldResult{call: call, chars: m.Chars, failed: Failed(call), writes: ledger.ChangesFiles(call.Name)}
	for _, b := range m.Blocks[0].Block.(eventlog.ToolResult).Content {
		if _, ok := b.(eventlog.Text); !ok {
			r.opaque = true
		}
		if _, ok := b.(eventlog.ProviderBlock); ok {
			r.sealed = true
		}
	}
	at := int32(len(x.results))
	hold := func(name string) int32 {
		id := x.id(name)
		if h := x.holders[id]; len(h) == 0 || h[len(h)-1] != at {
			x.holders[id] = append(h, at)
			return id
		}
		return -1
	}
	show := func(name string) {
		if id := hold(name); id >= 0 {
			r.names = append(r.names, id)
		}
	}
	reference.EachName(call.Body, show)
	reference.EachField(call.Body, show)
	keep := func(name string) { hold(name) }
	reference.EachLine(call.Body, keep)
	reference.EachName(reference.Unescaped(call.Arguments), keep)
	reference.EachField(call.Arguments, keep)
	return r
}

func (x *nameIndex) id(name string) int32 {
	id, ok := x.ids[name]
	if !ok {
		id = int32(len(x.holders))
		x.ids[name] = id
		x.names = append(x.names, name)
		x.holders = append(x.holders, nil)
	}
	return id
}

// names returns the roots that a group gives by what it says.
func (known *heldGroup) names(g *reduce.Group) []string {
	if known.saidMade {
		return known.said
	}
	known.saidMade = true
	seen := map[string]bool{}
	yield := func(name string) {
		if !seen[name] {
			seen[name] = true
			known.said = append(known.said, name)
		}
	}
	for m := range g.Messages {
		for _, b := range g.Messages[m].Blocks {
			switch b := b.Block.(type) {
			case eventlog.Text:
				reference.EachReference(b.Text, yield)
			case eventlog.Thinking:
				reference.EachReference(b.Text, yield)
			case eventlog.ToolCall:
				reference.EachReference(b.Arguments, yield)
				reference.EachReference(reference.Unescaped(b.Arguments), yield)
			}
		}
	}
	return known.said
}
