package content

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// longestItemID is the longest id of an item that is taken for the provider's.
const longestItemID = 64

// IsReasoningID reports whether an id is OpenAI's for an item of reasoning, which it
// wants back with what it sealed. It is the signature of such a block.
func IsReasoningID(id string) bool {
	rest, ok := strings.CutPrefix(id, "rs_")
	return ok && rest != "" && len(id) <= longestItemID && !strings.ContainsFunc(rest, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '_' && r != '-'
	})
}

// MadeUpReasoningID replaces an unknown id of what OpenAI sealed, and is recognised by it.
func MadeUpReasoningID(encrypted string) string {
	sum := sha256.Sum256([]byte(encrypted))
	return "rs_" + hex.EncodeToString(sum[:12])
}
