package pi

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/content"
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/provider"
)

// reasoningMembers are the members of Chat Completions in which servers give reasoning as text. pi has the name of the member
// as the signature.
var reasoningMembers = []string{"reasoning_content", "reasoning", "reasoning_text"}

// detail is what OpenRouter sealed and pi keeps with the call that it names. pi sends the details of all calls of a message
// as its reasoning_details.
type detail struct {
	Type transcript.Word `json:"type"`
	ID   transcript.Word `json:"id"`
	Data transcript.Word `json:"data"`
}

func (d detail) of(callID string) bool {
	return strings.HasPrefix(string(d.Type), "reasoning.") && string(d.ID) == callID && d.Data != ""
}

// signed are a call and the seal before it: of Google's, or a detail, which hosted makes a part of the message's reasoning.
func (b *block) signed(call eventlog.ToolCall) []eventlog.Block {
	if b.ThoughtSignature == "" {
		return []eventlog.Block{call}
	}
	if strings.HasPrefix(b.ThoughtSignature, "{") {
		var d detail
		if transcript.Decode([]byte(b.ThoughtSignature), &d) != nil || !d.of(b.ID) {
			return []eventlog.Block{call} // pi sends nothing of it
		}
		list := transcript.List(jsontext.Value(b.ThoughtSignature))
		return []eventlog.Block{eventlog.Thinking{Signature: content.HostSeal(list, nil)}, call}
	}
	return []eventlog.Block{eventlog.ProviderBlock{Provider: content.Google, JSON: transcript.Wrap("thoughtSignature", b.ThoughtSignature)}, call}
}

// hosted makes one seal of the details of a message's calls, with the text of its first reasoning. Without any reasoning it is
// the first block.
func hosted(blocks []eventlog.Block) []eventlog.Block {
	var details []jsontext.Value
	out, first := make([]eventlog.Block, 0, len(blocks)), -1
	for _, block := range blocks {
		t, ok := block.(eventlog.Thinking)
		if list := sealDetails(t); len(list) > 0 {
			details = append(details, list...)
			continue
		}
		if ok && first < 0 && !t.Sealed() {
			first = len(out)
		}
		out = append(out, block)
	}
	if len(details) == 0 {
		return blocks
	}
	seal := eventlog.Thinking{Signature: content.HostSeal(transcript.List(details...), nil)}
	if first < 0 {
		return slices.Insert(out, 0, eventlog.Block(seal))
	}
	if t, ok := out[first].(eventlog.Thinking); ok {
		seal.Text = t.Text
	}
	out[first] = seal
	return out
}

// sealDetails are the elements of a seal of OpenRouter's; none of any other.
func sealDetails(t eventlog.Thinking) []jsontext.Value {
	var lists struct {
		Details []jsontext.Value `json:"reasoning_details"`
	}
	if !strings.HasPrefix(t.Signature, `{"reasoning_details":`) || transcript.Decode([]byte(t.Signature), &lists) != nil {
		return nil
	}
	return lists.Details
}

func isHosted(t eventlog.Thinking) bool { return provider.OfBlock(t, "") == provider.Host }

// signatures are the details of a message by the calls that have them in pi, and whether pi can hold all of the host's seals.
func signatures(blocks []eventlog.Block) (of map[string]string, all bool) {
	of, all = map[string]string{}, true
	calls := map[string]bool{}
	for _, block := range blocks {
		if c, ok := block.(eventlog.ToolCall); ok {
			calls[c.CallID] = true
		}
	}
	for _, block := range blocks {
		t, ok := block.(eventlog.Thinking)
		if !ok || !isHosted(t) {
			continue
		}
		list := sealDetails(t)
		all = all && len(list) > 0 && !strings.Contains(t.Signature, `"thinking_blocks":`)
		for _, raw := range list {
			var d detail
			id := ""
			if transcript.Decode(raw, &d) == nil {
				id = string(d.ID)
			}
			held := calls[id] && of[id] == "" && d.of(id)
			if all = all && held; held {
				of[id] = string(raw)
			}
		}
	}
	return of, all
}

// beforeText is what a text's signature holds for the text: OpenAI's phase, or Google's signature.
func beforeText(signature string) []eventlog.Block {
	var openai struct {
		Phase transcript.Word `json:"phase"`
	}
	switch data, err := base64.StdEncoding.DecodeString(signature); {
	case strings.HasPrefix(signature, "{") && transcript.Decode([]byte(signature), &openai) == nil && openai.Phase != "":
		return []eventlog.Block{eventlog.ProviderBlock{Provider: content.OpenAI, JSON: transcript.Wrap("phase", string(openai.Phase))}}
	case err == nil && len(data) > 0:
		return []eventlog.Block{eventlog.ProviderBlock{Provider: content.Google, JSON: transcript.Wrap("thoughtSignature", signature)}}
	}
	return nil
}

// phaseSignature is the signature of a text with the phase that a block holds, or "". pi wants the id of the text's item, which
// is made up.
func (r *renderer) phaseSignature(place int, b eventlog.ProviderBlock) string {
	members, ok := provider.Members(b)
	phase, isText := transcript.Text(jsontext.Value(members["phase"]))
	if !ok || !isText || b.Provider != content.OpenAI {
		return ""
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d", r.parent, place))
	return string(transcript.Object("v", 1, "id", "msg_"+hex.EncodeToString(sum[:12]), "phase", phase))
}
