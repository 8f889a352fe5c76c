package projection

import (
	"sync"

	"github.com/contextd/contextd/internal/ledger"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/projection/reference"
	"github.com/contextd/contextd/internal/reduce"
)

// nameIndex maps names to the results that have them. Groups are added when they appear and removed after they were
// dropped, so that one application takes time for new groups and for what the roots name, not for the whole log. It
// is a cache: everything in it can be computed again from the groups.
type nameIndex struct {
	ids     map[string]int32
	names   []string
	holders [][]int32 // by name id: indexes in results
	results []heldResult
	groups  map[*reduce.Group]*heldGroup
	pass    uint32 // number of the current pass: each call of follow starts one
	mu      sync.Mutex
}

// heldGroup has what is known of one group.
type heldGroup struct {
	// results has the index in nameIndex.results for each call of the group, in order; -1 for a call
	// without a result.
	results []int32
	// said are the names and quoted lines in the texts of the group and in the arguments of its calls;
	// filled in when first needed.
	said     []string
	saidMade bool
}

// heldResult has what is known of one result.
type heldResult struct {
	call           *reduce.Call
	chars          int
	names          []int32 // ids of the names in its body, without duplicates
	failed, writes bool
	// opaque says that the content has something other than text, so that it is unknown what refers to it. sealed
	// says that this includes a provider's own block.
	opaque, sealed bool
	// pointer replaces the result; made when first needed.
	pointer *reduce.Prepared

	// The rest belongs to one pass, and is out of date if its pass number is not the current one.

	seen uint32 // pass in which the result was in the view
	pass uint32 // pass in which it was a candidate for redaction
	// reached is the pass in which a root named it, by is the name's id, and back says whether this root
	// shows it again if it was redacted.
	reached uint32
	by      int32
	back    bool
	// redacted and restored are what the state says of it, and fate is the decision.
	redacted, restored bool
	fate               fate
}

func newNameIndex() *nameIndex {
	return &nameIndex{ids: map[string]int32{}, groups: map[*reduce.Group]*heldGroup{}}
}

// follow starts a pass: it adds the new groups of a view, and returns what is known of each group. If more than half
// of the known groups are no longer in the view, it builds a new index.
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

// names returns the names and quoted lines in what a group says, which are roots if the group is recent.
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
