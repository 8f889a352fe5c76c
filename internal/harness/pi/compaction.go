package pi

import (
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// compaction appends a compaction. It keeps all events from its first kept entry on; none if that is not
// before it.
func (b *branch) compaction(entry transcript.Entry, rec *record) {
	body := &eventlog.Compaction{Summary: rec.Summary, NativeJSON: transcript.Compact(entry.Native)}
	rec.Details.Value.into(body, rec.TokensBefore)
	keeping := false
	for _, s := range b.sent {
		keeping = keeping || (rec.FirstKeptID != "" && s.entry == rec.FirstKeptID) ||
			(rec.FirstKeptIndex != nil && s.index >= *rec.FirstKeptIndex)
		if keeping {
			body.KeptEventIDs = append(body.KeptEventIDs, s.event)
		}
	}
	if rec.RetainedTail != nil {
		body.KeptEventIDs = b.retained(rec.RetainedTail)
		if lost := len(rec.RetainedTail) - len(body.KeptEventIDs); lost > 0 {
			b.out.Warn(entry.Line, "%d of the messages that the compaction kept are not in the file", lost)
		}
	}
	if kept := rec.Details.Value.Contextd.Kept; kept != nil {
		body.KeptEventIDs = b.named(kept)
	}
	b.session.Boundary(entry, body)
}

// copied is what identifies a copy of a message.
type copied struct {
	Role       string         `json:"role"`
	Timestamp  jsontext.Value `json:"timestamp"`
	ToolCallID string         `json:"toolCallId"`
}

func (c copied) key() string {
	return c.Role + " " + transcript.Compact(c.Timestamp) + " " + c.ToolCallID
}

// retained returns the events of the messages that a compaction repeats.
func (b *branch) retained(tail []jsontext.Value) []string {
	wanted := map[string]int{}
	for _, raw := range tail {
		var c copied
		if transcript.Decode(raw, &c) == nil {
			wanted[c.key()]++
		}
	}
	var events []string
	for i := len(b.sent) - 1; i >= 0 && len(events) < len(tail); i-- {
		if key := original(b.sent[i].line); wanted[key] > 0 {
			wanted[key]--
			events = append(events, b.sent[i].event)
		}
	}
	slices.Reverse(events)
	return events
}

// original returns the key of the message that a record holds, or that pi makes of it.
func original(line jsontext.Value) string {
	var rec struct {
		Type      string          `json:"type"`
		Timestamp transcript.Word `json:"timestamp"`
		Message   *copied         `json:"message"`
	}
	if transcript.Decode(line, &rec) != nil {
		return ""
	}
	if rec.Message != nil {
		return rec.Message.key()
	}
	roles := map[string]string{"custom_message": "custom", "branch_summary": "branchSummary"}
	at := transcript.ParseTime(string(rec.Timestamp)).UnixMilli()
	return copied{Role: roles[rec.Type], Timestamp: jsontext.Value(strconv.FormatInt(at, 10))}.key()
}

// unread reads a compaction without a summary, which contextd wrote as an entry that no model sees.
func (b *branch) unread(entry transcript.Entry, rec *record) {
	body := &eventlog.Compaction{KeptEventIDs: b.named(rec.Data.compaction.Contextd.Kept)}
	rec.Data.compaction.into(body, rec.Data.tokensBefore)
	b.session.Boundary(entry, body)
}

// named returns the events of the entries with these names.
func (b *branch) named(entries []string) []string {
	wanted := map[string]bool{}
	for _, id := range entries {
		wanted[id] = true
	}
	var events []string
	for _, s := range b.sent {
		if wanted[s.entry] && s.entry != "" || wanted[place(s.index)] {
			events = append(events, s.event)
		}
	}
	return events
}

// details are what contextd adds to its own compactions; details of others are decoded as empty.
type details struct {
	Contextd struct {
		transcript.Provenance
		PostTokens *uint64 `json:"postTokens"`
		// Kept are the names of the kept entries, if they are not a tail.
		Kept []string `json:"kept"`
	} `json:"contextd"`
}

func (d *details) into(c *eventlog.Compaction, tokensBefore transcript.Count) {
	if tokensBefore > 0 {
		tokens := uint64(tokensBefore)
		c.PreTokens = &tokens
	}
	d.Contextd.Into(c)
	c.PostTokens = d.Contextd.PostTokens
}

// detailsOf makes the details of a compaction; nil if there is nothing to add.
func detailsOf(c *eventlog.Compaction, kept []string) jsontext.Value {
	d := transcript.With(transcript.JSON(transcript.ProvenanceOf(c)), "kept", kept, "postTokens", c.PostTokens)
	if len(d) == len("{}") {
		return nil
	}
	return transcript.Object("contextd", d)
}

// What pi writes around a summary when it sends that to the model.
const (
	compactionHead = "The conversation history before this point was compacted into the following summary:\n\n<summary>\n"
	compactionTail = "\n</summary>"
	branchHead     = "The following is a summary of a branch that this conversation came back from:\n\n<summary>\n"
	branchTail     = "</summary>"
)

// boundary returns the text that the model reads in place of what pi's compaction dropped.
func boundary(c *eventlog.Compaction) (b transcript.Boundary, ok bool) {
	if c.Summary == "" || !own(c) {
		return b, false
	}
	b.Blocks = []eventlog.Block{eventlog.Text{Text: compactionHead + c.Summary + compactionTail}}
	return b, true
}

// branchSummary returns the summary in a text of branchText, or the text itself if it is none.
func branchSummary(text string) string {
	if inner, ok := strings.CutPrefix(text, branchHead); ok {
		return strings.TrimSuffix(inner, branchTail)
	}
	return text
}

func branchText(summary string) string { return branchHead + summary + branchTail }
