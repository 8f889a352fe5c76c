package render

import (
	"maps"
	"slices"
	"strings"

	eventlog "github.com/contextd/contextd/internal/log"
)

// anthropicWaiting are the ids of the uses of server tools at the end of a message, next to its calls, with the types of
// their results. The API answers them at the beginning of the next message: after a pause, or once the calls have their
// results. Code that calls the runtime's tools is not among them: the calls would need to name it.
func anthropicWaiting(blocks []eventlog.Block) map[string]string {
	var waiting map[string]string
	for _, block := range slices.Backward(blocks) {
		if _, ok := block.(eventlog.ToolCall); ok {
			continue
		}
		b, ok := block.(eventlog.ProviderBlock)
		if !ok || b.Provider != providerAnthropic {
			break
		}
		head := readAnthropic(b.JSON)
		result, ok := head.resultType()
		if !ok || strings.HasSuffix(result, "code_execution_tool_result") || !anthropicSound(head.Type, b.JSON) {
			break
		}
		if waiting == nil {
			waiting = map[string]string{}
		}
		waiting[head.ID] = result
	}
	return waiting
}

// anthropicAcross are the uses of server tools whose result is not in their message but may go out: by fragment, the ids
// that go out from it. They are answered by the next message of the assistant, or wait for the API at the end of the
// request, where nothing but the results of the message's calls comes after them. unanswered counts the others.
func anthropicAcross(fragments []Fragment) (across map[int][]string, unanswered int) {
	across = map[int][]string{}
	for i := range fragments {
		f := &fragments[i]
		if f.Speaker != speakerAssistant || f.JSON == nil {
			continue
		}
		waiting := anthropicWaiting(f.Blocks)
		if len(waiting) == 0 {
			continue
		}
		next := i + 1
		for next < len(fragments) && (fragments[next].Role == eventlog.RoleTool || fragments[next].JSON == nil) {
			next++
		}
		ids := slices.Sorted(maps.Keys(waiting))
		switch {
		case next == len(fragments):
		case fragments[next].Speaker == speakerAssistant && answers(fragments[next].Blocks, waiting):
			across[next] = ids
		default:
			unanswered++
			continue
		}
		across[i] = append(across[i], ids...)
	}
	return across, unanswered
}

// answers reports whether a message has one result of each of these uses, which are given with the types of these.
func answers(blocks []eventlog.Block, uses map[string]string) bool {
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
			return false
		}
		found[head.ToolUseID] = true
	}
	return len(found) == len(uses)
}

func anthropicUnanswered(fragments []Fragment) int {
	_, n := anthropicAcross(fragments)
	return n
}

// answerAcross renders again the messages with such uses and with their results, and returns the ids that go out, by
// fragment.
func answerAcross(fragments []Fragment) map[int][]string {
	across, _ := anthropicAcross(fragments)
	for i, ids := range across {
		f := &fragments[i]
		c := &content{message: &f.Message, across: ids}
		anthropicAssistant(c)
		f.JSON = c.json()
		before := anthropicFragments(f.Message)[0].Conversions
		f.Conversions = besides(slices.DeleteFunc(slices.Clone(f.Conversions), func(x Conversion) bool {
			return slices.Contains(before, x)
		}), c.conversions)
	}
	return across
}
