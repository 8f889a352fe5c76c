package claude

import "github.com/contextd/contextd/internal/harness/transcript"

// Detect recognises a transcript by its first records.
func Detect(p transcript.Probe) bool {
	switch {
	case p.Has("type", "uuid", "sessionId"), p.Has("type", "uuid", "parentUuid"):
		return true
	case p.Is("type", "user", "assistant") && p.Has("type", "message.role", "uuid"):
		return true
	}
	return p.Is("type", "file-history-snapshot", "summary", "queue-operation") && p.Has("type") &&
		(p.Has("messageId") || p.Has("leafUuid") || p.Has("sessionId"))
}
