package render

import (
	"slices"
	"strings"
	"sync/atomic"

	eventlog "github.com/contextd/contextd/internal/log"
)

// serverTools are the uses of server tools and their results in a message of the assistant. They are read when the message
// is rendered, and what it becomes among other messages is kept, so that joining it again parses and renders nothing.
type serverTools struct {
	uses []serverUse
	// waiting are the types of the results of the uses that wait for one, by id.
	waiting map[string]string
	results map[string]toolOutcome
	// callers are the ids of the uses that the message's calls name.
	callers map[string]bool
	// alone are the conversions of the message by itself.
	alone []Conversion

	distinct atomic.Pointer[renderedDistinct]
	across   atomic.Pointer[renderedAcross]
}

// serverUse is a block that may be the use of a server tool; sent is set where it may go out.
type serverUse struct {
	block int
	id    string
	sent  bool
}

// toolOutcome is the result of a server tool; sound is set where it has the form of its type and is the only one of its id.
type toolOutcome struct {
	of    string
	sound bool
}

// renderedDistinct is a message without the uses in some blocks, and renderedAcross one in which some ids go out across
// messages.
type (
	renderedDistinct struct {
		without  []int
		fragment Fragment
	}
	renderedAcross struct {
		ids         map[string]bool
		json        []byte
		conversions []Conversion
	}
)

// readServerTools reads the blocks of a message that was rendered by itself; nil if there is nothing of server tools.
func readServerTools(c *content) *serverTools {
	if c.read == nil {
		return nil
	}
	blocks := c.message.Blocks
	t := &serverTools{callers: anthropicCallers(blocks), alone: c.conversions}
	t.waiting = anthropicWaiting(blocks, c.read, t.callers)
	for i, block := range blocks {
		if b, ok := block.(eventlog.ProviderBlock); !ok || b.Provider != providerAnthropic {
			continue
		}
		read := &c.read[i]
		if strings.HasSuffix(read.Type, "_tool_use") {
			_, waits := t.waiting[read.ID]
			t.uses = append(t.uses, serverUse{i, read.ID, waits || read.paired})
		}
		if read.ToolUseID == "" {
			continue
		}
		if t.results == nil {
			t.results = map[string]toolOutcome{}
		}
		_, again := t.results[read.ToolUseID]
		t.results[read.ToolUseID] = toolOutcome{read.Type, read.sound && !again}
	}
	if t.uses == nil && t.results == nil && t.callers == nil {
		return nil
	}
	return t
}

// serverTools are those of the fragment's message; nil if it has none.
func (f *Fragment) serverTools() *serverTools {
	if f.notes == nil {
		return nil
	}
	return f.notes.serverTools
}

// answers reports whether a message has one result of each of these uses, which are given with the types of these, or
// none of any.
func (t *serverTools) answers(uses map[string]string) (all, none bool) {
	if t == nil {
		return false, true
	}
	found := 0
	for id, result := range uses {
		r, ok := t.results[id]
		switch {
		case !ok:
		case !r.sound || r.of != result:
			return false, false
		default:
			found++
		}
	}
	return found == len(uses), found == 0
}

// callFor reports whether all of these uses are code for which the message calls.
func (t *serverTools) callFor(uses map[string]string) bool {
	for id, result := range uses {
		if t == nil || !ofCode(result) || !t.callers[id] {
			return false
		}
	}
	return true
}

// distinctUses renders again the messages with uses of server tools whose ids an earlier message uses, and describes these
// uses: an id may be used once in a request. It does not change the fragments that it is given, and stops when ended, which may
// be nil, returns an error.
func distinctUses(fragments []Fragment, ended func() error) []Fragment {
	using := 0
	for i := range fragments {
		if t := fragments[i].serverTools(); t != nil && len(t.uses) > 0 {
			using++
		}
	}
	if using < 2 {
		return fragments
	}
	taken, cloned := map[string]bool{}, false
	for i := range fragments {
		t := fragments[i].serverTools()
		if t == nil {
			continue
		}
		var repeated []int
		for _, use := range t.uses {
			if taken[use.id] {
				repeated = append(repeated, use.block)
			}
		}
		if len(repeated) > 0 {
			if ended != nil && ended() != nil {
				return fragments
			}
			if !cloned {
				fragments, cloned = slices.Clone(fragments), true
			}
			fragments[i] = fragments[i].withoutUses(repeated)
			if t = fragments[i].serverTools(); t == nil {
				continue
			}
		}
		for _, use := range t.uses {
			if use.sent {
				taken[use.id] = true
			}
		}
	}
	return fragments
}

// withoutUses renders a fragment's message again with some uses of server tools described.
func (f *Fragment) withoutUses(at []int) Fragment {
	t := f.serverTools()
	made := t.distinct.Load()
	if made == nil || !slices.Equal(made.without, at) {
		m := f.Message
		m.Blocks = slices.Clone(m.Blocks)
		var now []Conversion
		for _, i := range at {
			what := nativeKind(m.Blocks[i].(eventlog.ProviderBlock))
			now = append(now, m.conversion(i, Described, what))
			m.Blocks[i] = eventlog.Text{Text: description(what, m.place(i), m.Recall)}
		}
		made = &renderedDistinct{at, anthropicFragments(m)[0]}
		made.fragment.Conversions = append(now, made.fragment.Conversions...)
		t.distinct.Store(made)
	}
	out := made.fragment
	out.Conversions = besides(f.Conversions, out.Conversions)
	return out
}
