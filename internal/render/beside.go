package render

import (
	"encoding/json"
	"maps"
	"slices"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/provider"
)

// beside are members that a provider's block holds for the block after it. They are sent in that block's object if the
// format is of their provider and has a place for them, and else left out.
type beside struct {
	by      string // the provider
	block   int
	members map[string]json.RawMessage
}

// noting records a conversion of a block.
type noting func(block int, kind ConversionKind, what string)

// hold keeps the members that block i holds for the next one; false for a block that holds none. It leaves out members
// that block i-1 did not take.
func (h *beside) hold(i int, block eventlog.Block, note noting) bool {
	if i > h.block+1 {
		h.leave(note)
	}
	b, ok := block.(eventlog.ProviderBlock)
	if !ok {
		return false
	}
	members, ok := provider.Members(b)
	if ok {
		h.leave(note)
		*h = beside{b.Provider, i, members}
	}
	return ok
}

// take appends a member of a provider to an object, if it is held and sound.
func (h *beside) take(o *object, by, name string, sound func(value string) bool) {
	if value := string(h.members[name]); value != "" && h.by == by && sound(value) {
		whole, _ := wholePairs(value)
		o.raw(name, whole)
		delete(h.members, name)
	}
}

// leave leaves out the members that nothing took.
func (h *beside) leave(note noting) {
	if h.members == nil {
		return // the common case, without allocations
	}
	for _, name := range slices.Sorted(maps.Keys(h.members)) {
		note(h.block, LeftOut, brief(name)+" of "+h.by)
	}
	h.members = nil
}
