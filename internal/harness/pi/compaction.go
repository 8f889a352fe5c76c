package pi

import (
	"github.com/contextd/contextd/internal/harness/transcript"
	"github.com/contextd/contextd/internal/harness/transcript/jsonvalue"
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

func detailsOf(c *eventlog.Compaction, kept []jsonvalue.Value) (d jsonvalue.Value, ok bool) {
	var v jsonvalue.Value
	v.SetString("trigger", triggers[c.Trigger])
	v.SetString("mode", c.Mode)
	v.SetString("strategy", c.Strategy)
	if kept != nil {
		v.Set("kept", jsonvalue.List(kept...))
		ok = true
	}
	if c.PostTokens != nil {
		v.Set("postTokens", number(*c.PostTokens))
		ok = true
	}
	ok = ok || c.Trigger != eventlog.TriggerUnspecified || c.Mode != "" || c.Strategy != ""
	return jsonvalue.Object(jsonvalue.Member{Name: "contextd", Value: v}), ok
}
