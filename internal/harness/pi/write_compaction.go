package pi

import (
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

func (w *sessionWriter) compaction(e *eventlog.Event, c *eventlog.Compaction) {
	kept, entries := w.kept(c)
	if own(c) {
		w.add(e, transcript.Compacted([]byte(c.NativeJSON)))
		if saidAgain(c.NativeJSON) {
			w.sayAgain(e, kept.Sent)
		}
		return
	}
	tokens := uint64(0)
	if c.PreTokens != nil {
		tokens = *c.PreTokens
	}
	at := w.render.at(e)
	if c.Summary == "" {
		w.file.report.Warn("a compaction whose summary is not readable stays out of pi's prompt, which has the whole history")
		d := detailsOf(c, entries)
		if d == nil {
			d = transcript.Object("contextd", transcript.Null)
		}
		d = transcript.With(d, "tokensBefore", tokens)
		w.add(e, w.file.versioned(w.render.envelope("custom", e.ID, at, "customType", compactionType, "data", d)))
		return
	}
	name, first := "firstKeptEntryId", any(e.ID)
	switch {
	case w.file.old && kept.Tail != "" && !kept.More:
		name, first = "firstKeptEntryIndex", w.line[kept.Tail]
	case w.file.old:
		name, first = "firstKeptEntryIndex", len(w.entries)+w.shared+1
	case kept.Tail != "" && !kept.More:
		first = w.native[kept.Tail]
	}
	var named []string
	if kept.More {
		named = entries
	}
	v := w.render.envelope("compaction", e.ID, at, "summary", c.Summary, name, first, "tokensBefore", tokens)
	if d := detailsOf(c, named); d != nil {
		v = transcript.With(v, "details", d, "fromHook", true)
	}
	w.add(e, w.file.versioned(v))
	if kept.More {
		w.sayAgain(e, kept.Sent)
	}
}

// kept returns the events that a compaction kept, and the names of their entries. pi can only keep a tail,
// which must not reach back to entries that an older compaction repeats.
func (w *sessionWriter) kept(c *eventlog.Compaction) (k transcript.Kept, entries []string) {
	var places []int
	for _, id := range c.KeptEventIDs {
		places = append(places, w.places[id]...)
	}
	k = transcript.KeptOf(w.sent, w.again, places)
	for _, id := range k.Sent {
		entries = append(entries, w.name(id))
	}
	return k, entries
}

// sayAgain writes the entries of kept events once more after a compaction, because pi can keep only a tail.
func (w *sessionWriter) sayAgain(e *eventlog.Event, events []string) {
	w.again = len(w.sent)
	for i, event := range events {
		if !w.file.report.Again(len(w.said[event])) {
			continue
		}
		id := e.ID + "-kept-" + strconv.Itoa(i+1)
		set := `"contextdKeptOf":` + transcript.Quote(w.name(event))
		if !w.file.old {
			set += `,"id":` + transcript.Quote(id) + `,"parentId":` + transcript.Quote(w.render.parent)
		}
		raw, err := transcript.Amend(w.said[event], []byte(`{"set":{`+set+`}}`))
		if err != nil {
			w.file.report.Warn("an entry that a compaction kept cannot be said again: %v", err)
			continue
		}
		if !w.file.old {
			w.render.wrote(id, e.Time)
		}
		w.put(id, raw)
	}
}

// name returns how a compaction names an entry that it kept: by its id or, in version 1 which has none, by its
// position.
func (w *sessionWriter) name(event string) string {
	if w.file.old {
		return place(w.line[event])
	}
	return w.native[event]
}

func place(index int) string { return "#" + strconv.Itoa(index) }

// put adds an entry to the file, unless another branch did.
func (w *sessionWriter) put(key string, raw jsontext.Value) {
	if w.file.written[key] {
		w.shared++
		return
	}
	w.file.written[key] = true
	w.entries = append(w.entries, raw)
}

// saidAgain reports whether a compaction in pi's form keeps nothing by itself, and is followed by repetitions
// of the entries that it names.
func saidAgain(native string) bool {
	var c struct {
		ID      jsontext.Value            `json:"id"`
		First   jsontext.Value            `json:"firstKeptEntryId"`
		Index   jsontext.Value            `json:"firstKeptEntryIndex"`
		Details transcript.Maybe[details] `json:"details"`
	}
	if transcript.Decode([]byte(native), &c) != nil || len(c.Details.Value.Contextd.Kept) == 0 {
		return false
	}
	return c.ID != nil && string(c.ID) == string(c.First) || c.Index != nil && strings.HasPrefix(c.Details.Value.Contextd.Kept[0], "#")
}
