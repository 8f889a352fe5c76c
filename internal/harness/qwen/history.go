package qwen

import (
	"crypto/sha256"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/content"
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// compression makes a compaction of the record that replaces the chat by a summary and some messages that are
// kept.
func (c *chat) compression(entry transcript.Entry, rec *record) {
	var payload struct {
		Info struct {
			Before *uint64 `json:"originalTokenCount"`
			After  *uint64 `json:"newTokenCount"`
		} `json:"info"`
		History []struct {
			Parts jsontext.Value `json:"parts"`
		} `json:"compressedHistory"`
	}
	if len(rec.Payload) > 0 {
		if err := transcript.Decode(rec.Payload, &payload); err != nil {
			c.session.Unreadable(entry, err)
			return
		}
	}
	boundary := &eventlog.Compaction{PreTokens: payload.Info.Before, PostTokens: payload.Info.After, NativeJSON: transcript.Compact(entry.Native)}
	for i, message := range payload.History {
		if id := c.events[digest(message.Parts)]; id != "" {
			boundary.KeptEventIDs = append(boundary.KeptEventIDs, id)
			continue
		}
		blocks, err := content.GoogleBlocks(message.Parts)
		if texts := transcript.Texts(blocks); i == 0 && err == nil && len(texts) > 0 {
			boundary.Summary = texts[0]
		}
	}
	c.session.Boundary(entry, boundary)
}

// digest identifies a message by its parts.
func digest(parts jsontext.Value) [sha256.Size]byte {
	return sha256.Sum256([]byte(transcript.Compact(parts)))
}

// labelKept, on a rewind, is the id of the last message that the rewind keeps; empty if it keeps none.
const labelKept = Name + ".kept"

// follows reports whether an event is a rewind.
func follows(e eventlog.Event) bool {
	_, rewind := e.Labels[labelKept]
	return rewind
}

// left returns the ids of the messages that rewinds dropped; nil if there is no rewind.
func left(events []eventlog.Event) map[string]bool {
	var gone map[string]bool
	var there []string
	for _, e := range events {
		if _, ok := e.Body.(*eventlog.Message); ok {
			there = append(there, e.ID)
		}
		if !follows(e) {
			continue
		}
		if gone == nil {
			gone = map[string]bool{}
		}
		kept := len(there)
		for kept > 0 && there[kept-1] != e.Labels[labelKept] {
			kept--
		}
		for _, id := range there[kept:] {
			gone[id] = true
		}
		there = there[:kept]
	}
	return gone
}
