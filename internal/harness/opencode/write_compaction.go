package opencode

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// own recognises a compaction that was read from a file of the harness: from a request, or from a reply
// without one.
func own(c *eventlog.Compaction) (request, reply bool) {
	raw := []byte(c.NativeJSON)
	if !transcript.Valid(raw) {
		return false, false
	}
	kind, _ := transcript.MemberOf(raw, "type")
	_, info := transcript.MemberOf(raw, "info")
	_, other := transcript.MemberOf(raw, "timestamp")
	return string(kind) == `"compaction"` && !other, info
}

func (w *writer) compaction(e *eventlog.Event, c *eventlog.Compaction) {
	w.report.Compactions++
	request, lone := own(c)
	if lone {
		w.add(jsontext.Value(c.NativeJSON))
		return
	}
	difference, kept := w.envelopes.Entries[e.ID]
	if request && kept {
		w.add(w.report.Amend(w.native.request(e, c), difference))
	}
	within := e.Labels[labelWithin] == "true"
	if request && (kept || within) {
		id := summaryID(e.ID)
		w.follow([]eventlog.Event{*e})
		keeps := w.kept(c)
		w.compacted = len(w.sent)
		if difference, ok := w.envelopes.Entries[id]; ok {
			reply := w.report.Amend(w.native.reply(e, c), difference)
			w.add(reply)
			w.sayAgain(keeps.Sent, againOf(reply), millis(e.Time))
		}
		return
	}
	w.foreignCompaction(e, c)
}

// foreignCompaction writes a compaction that the harness did not make. Fields that the harness has no place
// for become metadata of the summary's text.
func (w *writer) foreignCompaction(e *eventlog.Event, c *eventlog.Compaction) {
	p := parts{session: w.foreign.session, message: w.messageID(e)}
	kept := w.kept(c)
	if c.Summary == "" {
		w.report.Warn("a compaction whose summary is not readable stays out of opencode's prompt, which has the whole history")
		part := p.add("text", "text", "", "ignored", true, "metadata", metadataOf(c, kept.Sent, nil))
		w.add(w.foreign.request(e, &eventlog.Compaction{NativeJSON: string(part)}))
		return
	}
	auto := c.Trigger != eventlog.TriggerManual && c.Trigger != eventlog.TriggerUnspecified
	part := p.add("compaction", "auto", auto)
	var named, again []string
	if kept.More {
		named = kept.Sent
		w.messageID(&eventlog.Event{ID: summaryID(e.ID), Time: e.Time}) // reserves its id: it must sort before these
		for range named {
			again = append(again, w.newID(e, "again"))
		}
	} else {
		part = transcript.With(part, "tail_start_id", transcript.Optional(kept.Tail))
	}
	asked := *c
	asked.NativeJSON = string(part)
	w.add(w.foreign.request(e, &asked))
	reply := w.foreign.reply(e, c)
	w.add(w.report.Amend(reply, `{"in":{"parts":{"at":{"1":{"set":{"metadata":`+string(metadataOf(c, named, again))+`}}}}}}`))
	w.compacted = len(w.sent)
	w.sayAgain(named, again, millis(w.foreign.last))
}

// kept returns the messages that a compaction kept. The harness can only keep a tail of those since the
// compaction before: a longer one would include older requests and summaries.
func (w *writer) kept(c *eventlog.Compaction) transcript.Kept {
	var places []int
	for _, id := range c.KeptEventIDs {
		places = append(places, w.places[w.owner[id]]...)
	}
	return transcript.KeptOf(w.sent, w.compacted, places)
}

// sayAgain writes kept messages once more after a compaction, under new ids, because the harness can keep
// only a tail. at is the compaction's time in milliseconds.
func (w *writer) sayAgain(messages, ids []string, at int64) {
	for i, message := range messages[:min(len(messages), len(ids))] {
		v, ok := w.said[message]
		if !ok || !w.report.Again(len(v)) {
			continue
		}
		var parts []jsontext.Value
		list, _ := transcript.MemberOf(v, "parts")
		if transcript.Decode(list, &parts) != nil {
			continue
		}
		var renamed []any
		for n := range parts {
			renamed = append(renamed, strconv.Itoa(n), transcript.Object("set",
				transcript.Object("id", partID(ids[i], n+1), "messageID", ids[i])))
		}
		info := transcript.Object("set", transcript.Object("id", ids[i]),
			"in", transcript.Object("time", transcript.Object("set", transcript.Object("created", at))))
		d := transcript.Object("in", transcript.Object("info", info, "parts", transcript.Object("at", transcript.Object(renamed...))))
		w.add(w.report.Amend(v, string(d)))
	}
}

// againOf returns the ids of the messages that repeat the kept ones, as the metadata of a compaction's reply
// lists them.
func againOf(reply jsontext.Value) []string {
	var message struct {
		Parts []part `json:"parts"`
	}
	if transcript.Decode(reply, &message) != nil {
		return nil
	}
	for i := range message.Parts {
		if c := message.Parts[i].Metadata[systemMark].Value.Compaction; c != nil {
			return c.Again
		}
	}
	return nil
}

func metadataOf(c *eventlog.Compaction, kept, again []string) jsontext.Value {
	return marked("compaction", transcript.Object("trigger", transcript.Triggers[c.Trigger], "mode", transcript.Optional(c.Mode),
		"strategy", transcript.Optional(c.Strategy), "preTokens", c.PreTokens, "postTokens", c.PostTokens,
		"kept", kept, "again", again))
}
