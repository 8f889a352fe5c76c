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

// besideForm is a member that an object may have besides those that the log has fields for.
type besideForm struct {
	name  string
	sound func(value string) bool
}

// hold keeps the members that a block holds for the next one; false for a block that holds none.
func (h *beside) hold(i int, block eventlog.Block, note noting) bool {
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

// noting records a conversion of a block.
type noting func(block int, kind ConversionKind, what string)

// take appends to an object the members that the format of a provider has a place for, in the order of the forms.
func (h *beside) take(o *object, by string, forms []besideForm) {
	if h.members == nil || h.by != by {
		return
	}
	for _, form := range forms {
		if value := string(h.members[form.name]); value != "" && form.sound(value) {
			whole, _ := wholePairs(value)
			o.raw(form.name, whole)
			delete(h.members, form.name)
		}
	}
}

// leave forgets the members that nothing took.
func (h *beside) leave(note noting) {
	if h.members == nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(h.members)) {
		note(h.block, LeftOut, brief(name)+" of "+h.by)
	}
	h.members = nil
}
