package pi

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// compaction keeps everything from its first kept entry on; where that is not
// before it, nothing.
func (b *branch) compaction(entry transcript.Entry, rec *record) {
	body := &eventlog.Compaction{Summary: rec.Summary, NativeJSON: transcript.Compact(entry.Native)}
	rec.Details.into(body, rec.TokensBefore)
	keeping := false
	for _, s := range b.sent {
		keeping = keeping || (rec.FirstKeptID != "" && s.entry == rec.FirstKeptID) ||
			(rec.FirstKeptIndex != nil && s.index >= *rec.FirstKeptIndex)
		if keeping {
			body.KeptEventIDs = append(body.KeptEventIDs, s.event)
		}
	}
	if rec.Details.Kept != nil {
		body.KeptEventIDs = b.named(rec.Details.Kept)
	}
	entry.Body, entry.Native = body, nil
	b.session.Append(entry)
}

// unread is a compaction whose summary cannot be read, which the writer keeps where no
// model sees it.
func (b *branch) unread(entry transcript.Entry, rec *record) {
	body := &eventlog.Compaction{KeptEventIDs: b.named(rec.Data.compaction.Kept)}
	rec.Data.compaction.into(body, rec.Data.tokensBefore)
	entry.Body, entry.Native = body, nil
	b.session.Append(entry)
}

// named are the events of entries.
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

// details are what contextd notes of its own compactions in pi's details; those of
// others are read as nothing.
type details struct {
	Trigger, Mode, Strategy string
	PostTokens              *uint64
	// Kept names the kept entries where they are not a tail.
	Kept []string
}

// UnmarshalJSON never fails.
func (d *details) UnmarshalJSON(raw []byte) error {
	var file struct {
		Contextd struct {
			Trigger    string   `json:"trigger"`
			Mode       string   `json:"mode"`
			Strategy   string   `json:"strategy"`
			PostTokens *uint64  `json:"postTokens"`
			Kept       []string `json:"kept"`
		} `json:"contextd"`
	}
	*d = details{}
	if transcript.Decode(raw, &file) == nil {
		c := file.Contextd
		*d = details{c.Trigger, c.Mode, c.Strategy, c.PostTokens, c.Kept}
	}
	return nil
}

var triggers = map[eventlog.CompactionTrigger]string{
	eventlog.TriggerManual: "manual", eventlog.TriggerThreshold: "threshold", eventlog.TriggerBudgetPressure: "budget_pressure",
}

func (d *details) into(c *eventlog.Compaction, tokensBefore transcript.Count) {
	if tokensBefore > 0 {
		tokens := uint64(tokensBefore)
		c.PreTokens = &tokens
	}
	c.Mode, c.Strategy, c.PostTokens = transcript.Clean(d.Mode), transcript.Clean(d.Strategy), d.PostTokens
	for trigger, name := range triggers {
		if name == d.Trigger {
			c.Trigger = trigger
		}
	}
}

// detailsOf is nil where there is nothing to note.
func detailsOf(c *eventlog.Compaction, kept []string) jsontext.Value {
	named := any(nil)
	if kept != nil {
		named = kept
	}
	d := transcript.Object("trigger", transcript.Optional(triggers[c.Trigger]), "mode", transcript.Optional(c.Mode),
		"strategy", transcript.Optional(c.Strategy), "kept", named, "postTokens", c.PostTokens)
	if len(d) == len("{}") {
		return nil
	}
	return transcript.Object("contextd", d)
}
