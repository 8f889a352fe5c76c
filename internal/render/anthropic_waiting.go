package render

import (
	"slices"
	"strings"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/provider"
)

// anthropicWaiting are the ids of the uses of server tools at the end of a message, next to its calls, with the types of
// their results. The API answers them at the beginning of the next message: after a pause, or once the calls have their
// results. Code is among them if one of the calls names it.
func anthropicWaiting(blocks []eventlog.Block) map[string]string {
	var waiting map[string]string
	callers := anthropicCallers(blocks)
	for _, block := range slices.Backward(blocks) {
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
		head := readAnthropic(b.JSON)
		result, ok := head.resultType()
		if !ok || ofCode(result) && !callers[head.ID] || !anthropicSound(head.Type, b.JSON) {
			break
		}
		if waiting == nil {
			waiting = map[string]string{}
		}
		waiting[head.ID] = result
	}
	leaveRepeated(waiting, blocks)
	return waiting
}

// leaveRepeated removes the ids that several uses of server tools in a message have: such uses cannot go out together.
func leaveRepeated(waiting map[string]string, blocks []eventlog.Block) {
	if len(waiting) == 0 {
		return
	}
	seen := map[string]bool{}
	for _, block := range blocks {
		b, ok := block.(eventlog.ProviderBlock)
		if !ok || b.Provider != providerAnthropic {
			continue
		}
		head := readAnthropic(b.JSON)
		if _, ok := head.resultType(); !ok {
			continue
		}
		if seen[head.ID] {
			delete(waiting, head.ID)
		}
		seen[head.ID] = true
	}
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

// anthropicAcross are the uses of server tools whose result is not in their message but may go out: by fragment, the ids
// that go out from it, true for code that waits for calls of the message. They are answered by the next message of the
// assistant, in which code may call again instead, or wait for the API at the end of the request, where nothing but the
// results of the message's calls comes after them. unanswered counts the others.
func anthropicAcross(fragments []Fragment) (across map[int]map[string]bool, unanswered int) {
	across = map[int]map[string]bool{}
	for i := range fragments {
		f := &fragments[i]
		if f.Speaker != speakerAssistant || f.JSON == nil {
			continue
		}
		waiting := anthropicWaiting(f.Blocks)
		if len(waiting) == 0 {
			continue
		}
		through, answered, ok := anthropicThrough(fragments, i, waiting)
		if !ok {
			unanswered++
			continue
		}
		for n, at := range through {
			if across[at] == nil {
				across[at] = make(map[string]bool, len(waiting))
			}
			ended := answered && n+1 == len(through)
			for id, result := range waiting {
				across[at][id] = across[at][id] || ofCode(result) && !ended
			}
		}
	}
	return across, unanswered
}

// anthropicThrough are the messages of the assistant from the one at i, which uses server tools, to the one that has
// their results, if answered, or to the end of the request; not ok if the results do not come.
func anthropicThrough(fragments []Fragment, i int, waiting map[string]string) (through []int, answered, ok bool) {
	for {
		through = append(through, i)
		i++
		for i < len(fragments) && (fragments[i].Role == eventlog.RoleTool || fragments[i].JSON == nil) {
			i++
		}
		switch {
		case i == len(fragments):
			return through, false, true
		case fragments[i].Speaker != speakerAssistant:
			return nil, false, false
		}
		switch all, none := answers(fragments[i].Blocks, waiting); {
		case all:
			return append(through, i), true, true
		case !none:
			return nil, false, false
		}
		callers := anthropicCallers(fragments[i].Blocks)
		for id, result := range waiting {
			if !ofCode(result) || !callers[id] {
				return nil, false, false
			}
		}
	}
}

// answers reports whether a message has one result of each of these uses, which are given with the types of these, or
// none of any.
func answers(blocks []eventlog.Block, uses map[string]string) (all, none bool) {
	found := map[string]bool{}
	for _, block := range blocks {
		b, ok := block.(eventlog.ProviderBlock)
		if !ok || b.Provider != providerAnthropic {
			continue
		}
		head := readAnthropic(b.JSON)
		result, asked := uses[head.ToolUseID]
		if !asked {
			continue
		}
		if found[head.ToolUseID] || head.Type != result || !anthropicSound(head.Type, b.JSON) {
			return false, false
		}
		found[head.ToolUseID] = true
	}
	return len(found) == len(uses), len(found) == 0
}

func anthropicUnanswered(fragments []Fragment) int {
	_, n := anthropicAcross(fragments)
	return n
}

// answerAcross renders again the messages with such uses and with their results, and returns the ids that go out, by
// fragment.
func answerAcross(fragments []Fragment) map[int]map[string]bool {
	across, _ := anthropicAcross(fragments)
	for i, ids := range across {
		f := &fragments[i]
		c := &content{message: &f.Message, across: ids}
		anthropicAssistant(c)
		f.JSON = c.json()
		alone := &content{message: &f.Message, read: c.read}
		anthropicAssistant(alone)
		before := map[Conversion]bool{}
		for _, x := range alone.conversions {
			before[x] = true
		}
		f.Conversions = besides(slices.DeleteFunc(slices.Clone(f.Conversions), func(x Conversion) bool { return before[x] }), c.conversions)
	}
	return across
}
