package content

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// longestItemID is the length up to which an id may be OpenAI's.
const longestItemID = 64

// IsReasoningID reports whether an id is OpenAI's for an item of reasoning. OpenAI needs it again together
// with the encrypted content; it is kept as the block's signature.
func IsReasoningID(id string) bool {
	rest, ok := strings.CutPrefix(id, "rs_")
	return ok && rest != "" && len(id) <= longestItemID && !strings.ContainsFunc(rest, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '_' && r != '-'
	})
}

// OpenAIReasoningText is the text of an item of reasoning. Without a seal it is the reasoning itself, if the item has it:
// that is what models without seals want back.
func OpenAIReasoningText(summary, own, encrypted string) string {
	if encrypted == "" && strings.TrimSpace(own) != "" {
		return own
	}
	return cmp.Or(summary, own)
}

// OpenAIReasoning is reasoning whose content only OpenAI can read, if encrypted is not empty. OpenAI needs its id again,
// which is kept where it is OpenAI's.
func OpenAIReasoning(text, encrypted, id string) eventlog.Thinking {
	t := eventlog.Thinking{Text: text, EncryptedContent: encrypted}
	if encrypted != "" && IsReasoningID(id) {
		t.Signature = id
	}
	return t
}

// HostSeal is the signature of reasoning that a host of Chat Completions sealed: its lists as they came, or "" where nothing in
// them is sealed. A list may be absent.
func HostSeal(details, blocks jsontext.Value) string {
	type element struct {
		Signature transcript.Word `json:"signature"`
		Data      transcript.Word `json:"data"`
	}
	members := []any{"reasoning_details", nil, "thinking_blocks", nil}
	sealed := false
	for i, list := range []jsontext.Value{details, blocks} {
		var elements []transcript.Maybe[element]
		if transcript.Decode(list, &elements) != nil || !slices.ContainsFunc(elements, func(e transcript.Maybe[element]) bool {
			return e.Value.Signature != "" || e.Value.Data != ""
		}) {
			continue
		}
		members[2*i+1], sealed = list, true
	}
	if !sealed {
		return ""
	}
	return transcript.Compact(transcript.Object(members...))
}

// MadeUpReasoningID derives an id from encrypted content whose own id is unknown. The same content always
// gives the same id, by which a reader recognises it as made up.
func MadeUpReasoningID(encrypted string) string {
	sum := sha256.Sum256([]byte(encrypted))
	return "rs_" + hex.EncodeToString(sum[:12])
}
