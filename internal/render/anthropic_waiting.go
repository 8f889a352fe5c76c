package render

import (
	"maps"
	"slices"
	"strings"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/provider"
)

// anthropicWaiting are the ids of the uses of server tools at the end of a message, next to its calls, with the types of
// their results. The API answers them at the beginning of the next message: after a pause, or once the calls have their
// results. Code is among them if one of the calls names it. Uses of one id cannot go out together, so none of them is.
func anthropicWaiting(blocks []eventlog.Block, read []anthropicBlock, callers map[string]bool) map[string]string {
	var waiting map[string]string
	for i, block := range slices.Backward(blocks) {
		if _, ok := block.(eventlog.ToolCall); ok {
			continue
		}
		b, ok := block.(eventlog.ProviderBlock)
		if !ok || b.Provider != providerAnthropic {
			break
		}
		if _, ok := provider.Members(b); ok {
			continue
		}
		result, ok := read[i].resultType()
		if !ok || ofCode(result) && !callers[read[i].ID] || !read[i].sound {
			break
		}
		if waiting == nil {
			waiting = map[string]string{}
		}
		waiting[read[i].ID] = result
	}
	if len(waiting) == 0 {
		return nil
	}
	seen := map[string]bool{}
	for i, block := range blocks {
		if b, ok := block.(eventlog.ProviderBlock); !ok || b.Provider != providerAnthropic {
			continue
		}
		if _, ok := read[i].resultType(); !ok {
			continue
		}
		if seen[read[i].ID] {
			delete(waiting, read[i].ID)
		}
		seen[read[i].ID] = true
	}
	return waiting
}

// ofCode reports whether a type of results is that of code, which may call the runtime's tools.
func ofCode(result string) bool { return strings.HasSuffix(result, "code_execution_tool_result") }

// anthropicCallers are the ids of the uses of server tools that the calls of a message name.
func anthropicCallers(blocks []eventlog.Block) map[string]bool {
	var ids map[string]bool
	for i, block := range blocks {
		b, ok := block.(eventlog.ProviderBlock)
		if !ok || b.Provider != providerAnthropic || i+1 == len(blocks) {
			continue
		}
		if _, ok := blocks[i+1].(eventlog.ToolCall); !ok {
			continue
		}
		members, _ := provider.Members(b)
		if id, ok := anthropicCaller(string(members["caller"])); ok && id != "" {
			if ids == nil {
				ids = map[string]bool{}
			}
			ids[id] = true
		}
	}
	return ids
}

// unansweredUses are uses of server tools of a message whose result did not come yet: those that wait, and the messages of the
// assistant through which they do.
type unansweredUses struct {
	waiting map[string]string
	through []int
}

// goOut adds the uses to what goes out from each message; with answered, the last one has their results.
func (u unansweredUses) goOut(across map[int]map[string]bool, answered bool) {
	for n, at := range u.through {
		if across[at] == nil {
			across[at] = make(map[string]bool, len(u.waiting))
		}
		ended := answered && n+1 == len(u.through)
		for id, result := range u.waiting {
			across[at][id] = across[at][id] || ofCode(result) && !ended
		}
	}
}

// anthropicAcross are the uses of server tools whose result is not in their message but may go out: by fragment, the ids
// that go out from it, true for code that waits for calls of the message. They are answered by the next message of the
// assistant, in which code may call again instead, or wait for the API at the end of the request, where nothing but the
// results of the message's calls comes after them. unanswered counts the others. No two messages use the same id.
func anthropicAcross(fragments []Fragment) (across map[int]map[string]bool, unanswered int) {
	across = map[int]map[string]bool{}
	var open []unansweredUses
	for i := range fragments {
		f := &fragments[i]
		if f.Role == eventlog.RoleTool || f.JSON == nil {
			continue
		}
		if f.Speaker != speakerAssistant {
			unanswered += len(open)
			open = nil
			continue
		}
		t := f.serverTools()
		still := open[:0]
		for _, u := range open {
			u.through = append(u.through, i)
			switch all, none := t.answers(u.waiting); {
			case all:
				u.goOut(across, true)
			case none && t.callFor(u.waiting):
				still = append(still, u)
			default:
				unanswered++
			}
		}
		open = still
		if t != nil && len(t.waiting) > 0 {
			open = append(open, unansweredUses{t.waiting, []int{i}})
		}
	}
	for _, u := range open {
		u.goOut(across, false)
	}
	return across, unanswered
}

func anthropicUnanswered(fragments []Fragment, ended func() error) int {
	fragments = distinctUses(fragments, ended)
	across, n := anthropicAcross(fragments)
	for i, ids := range across {
		if ended != nil && ended() != nil {
			break
		}
		fragments[i].withAcross(ids)
	}
	return n
}

// withAcross renders a fragment's message again with uses of server tools that go out across messages.
func (f *Fragment) withAcross(ids map[string]bool) *renderedAcross {
	t := f.serverTools()
	made := t.across.Load()
	if made == nil || !maps.Equal(made.ids, ids) {
		c := &content{message: &f.Message, across: ids}
		anthropicAssistant(c)
		made = &renderedAcross{ids, c.json(), c.conversions}
		t.across.Store(made)
	}
	return made
}

// answerAcross renders again the messages with such uses and with their results, and returns the ids that go out, by
// fragment.
func answerAcross(fragments []Fragment) map[int]map[string]bool {
	across, _ := anthropicAcross(fragments)
	for i, ids := range across {
		f := &fragments[i]
		made := f.withAcross(ids)
		before := map[Conversion]bool{}
		for _, x := range f.serverTools().alone {
			before[x] = true
		}
		f.JSON = made.json
		f.Conversions = besides(slices.DeleteFunc(slices.Clone(f.Conversions), func(x Conversion) bool { return before[x] }), made.conversions)
	}
	return across
}
