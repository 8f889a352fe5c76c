package opencode

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"time"
)

// Ids of the harness begin with what they are of, and those of messages sort by
// their time: 48 bits of milliseconds and a count, then letters and digits.
const (
	sessionPrefix = "ses"
	messagePrefix = "msg"
	partPrefix    = "prt"
)

const letters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

func name(seed string) string {
	sum := sha256.Sum256([]byte(seed))
	out := make([]byte, 14)
	for i := range out {
		out[i] = letters[int(sum[i])%len(letters)]
	}
	return string(out)
}

// makeID makes an id for something that has none; order must grow.
func makeID(prefix string, at time.Time, order int, seed string) string {
	n := (uint64(max(at.UnixMilli(), 0))<<12 + uint64(order)) & (1<<48 - 1)
	return fmt.Sprintf("%s_%012x%s", prefix, n, name(seed))
}

// idLength is that of the harness's ids after the prefix: a time and 14 letters.
const idLength = 12 + 14

// ownID reports whether the id of a message is one of the harness's: only such ids sort by
// their time, and others have messages that begin with the same letters.
func ownID(id string) bool {
	rest, ok := strings.CutPrefix(id, messagePrefix+"_")
	return ok && len(rest) == idLength && strings.IndexFunc(rest, func(c rune) bool { return !strings.ContainsRune(letters, c) }) < 0
}

// partID numbers the parts of a message.
func partID(message string, n int) string {
	return fmt.Sprintf("%s_%04x%s", partPrefix, n, name(message))
}

// inner are the marks after a message's id in the ids of its events.
var inner = []string{"/part-", "/step-", "/result-", "/empty-message", "/orphan-result", "/misplaced-block"}

// messageID is the id of the message that an event is part of.
func messageID(event string) string {
	for _, mark := range inner {
		if i := strings.Index(event, mark); i >= 0 {
			event = event[:i]
		}
	}
	return event
}
