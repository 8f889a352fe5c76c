package render

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

const (
	// mappedPrefix begins the call ids that stand for others.
	mappedPrefix = "ctx_"
	mappedDigits = 24
	// longestCallID is the shortest of the providers' limits, which is that of OpenAI's
	// Chat Completions.
	longestCallID = 40
)

// WireCallID is the id that a tool call and its result have in the providers'
// formats. An id that every provider takes (letters, digits, "_" and "-", at most 40
// of them) stays; any other gives way to "ctx_" and 24 hex digits of its SHA-256.
// The number tells calls apart that have one id: the first, 0, may keep it.
func WireCallID(id string, number uint32) string {
	if number == 0 && plainCallID(id) {
		return id
	}
	sum := sha256.Sum256([]byte(id + "\x00" + strconv.FormatUint(uint64(number), 10)))
	return mappedPrefix + hex.EncodeToString(sum[:])[:mappedDigits]
}

// MappedCallID reports whether an id may be one that stands for another.
func MappedCallID(id string) bool {
	return len(id) == len(mappedPrefix)+mappedDigits && strings.HasPrefix(id, mappedPrefix) &&
		strings.Trim(id[len(mappedPrefix):], "0123456789abcdef") == ""
}

func plainCallID(id string) bool {
	if id == "" || len(id) > longestCallID {
		return false
	}
	for i := range len(id) {
		c := id[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-') {
			return false
		}
	}
	return true
}
