package reduce

import (
	"fmt"
	"slices"

	eventlog "github.com/contextd/contextd/internal/log"
)

// duplicateMinTokens keeps results that a pointer would hardly shorten.
const duplicateMinTokens = 40

// duplicates stubs a result whose body a later identical call returned again, as
// of the last batch: the older copy says nothing that the newer does not.
type duplicates struct {
	enabled bool
	texts   texts
}

func (duplicates) Name() string { return "duplicates" }

func (d duplicates) Reduce(v View, s State) (View, Step) {
	if !d.enabled || s.EvictedAsOf == 0 {
		return v, Step{Note: "nothing was due"}
	}
	type key struct{ name, arguments, body string }
	e := v.Editor()
	newest := map[key]*Call{}
	for i := v.Len() - 1; i >= 0 && v.Ended() == nil; i-- {
		g := v.Group(i)
		if g.First > s.EvictedAsOf {
			continue
		}
		for c := len(g.Calls) - 1; c >= 0; c-- {
			call := &g.Calls[c]
			result := &g.Messages[call.Result]
			if call.Interrupted || call.Seq > s.EvictedAsOf || result.Tokens < duplicateMinTokens || !textAlone(result) {
				continue
			}
			k := key{call.Name, call.Arguments, call.Body}
			later, again := newest[k]
			if !again {
				newest[k] = call
				continue
			}
			if g.outlasts() {
				continue // the later one may be dropped before it
			}
			e.Replace(i, call, Stubbed, d.texts.duplicate(call, later), d.Name(), "the same call returned the same later")
		}
	}
	return e.View(), Step{
		Touched: e.Touched(),
		Note:    fmt.Sprintf("stubbed %d results that a later call returned again, as of event %d", e.Touched(), s.EvictedAsOf),
	}
}

// textAlone reports whether a result is text and nothing else: images cannot be compared by
// the body.
func textAlone(m *Message) bool {
	content := m.Blocks[0].Block.(eventlog.ToolResult).Content
	return !slices.ContainsFunc(content, func(b eventlog.Block) bool {
		_, ok := b.(eventlog.Text)
		return !ok
	})
}
