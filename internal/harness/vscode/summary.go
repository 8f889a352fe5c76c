package vscode

import (
	"slices"

	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// summary replaces a round and all that is before it.
type summary struct {
	Round transcript.Word `json:"toolCallRoundId"`
	Text  transcript.Word `json:"text"`
}

// past is what a summary in a later request, or a result there, can refer to.
type past struct {
	messages []string             // the ids of all events of messages
	contexts []int                // the indexes in messages of those that stay after a summary
	ends     map[string]int       // how many messages there were after a round
	open     []call               // calls of the request before without a result
	texts    map[string]summaryAt // of the request
}

// summaryAt is a summary, and whether it was appended.
type summaryAt struct {
	text string
	done bool
}

// summaries collects what replaces rounds, by their ids.
func (m *metadata) summaries() map[string]summaryAt {
	out := map[string]summaryAt{}
	for i := range m.Rounds {
		if text := string(m.Rounds[i].Summary); text != "" {
			out[m.Rounds[i].ID] = summaryAt{text: text}
		}
	}
	for _, s := range append(m.Summaries.Value, m.Summary.Value) {
		if s.Text != "" {
			out[string(s.Round)] = summaryAt{text: string(s.Text)}
		}
	}
	return out
}

// earlier appends the compaction of a request whose summary replaces a round of a request before it.
func (r *reader) earlier(entry transcript.Entry, sent *metadata) {
	r.texts = sent.summaries()
	for _, s := range append(slices.Clone(sent.Summaries.Value), sent.Summary.Value) {
		r.compact(entry, "/summary", string(s.Round))
	}
}

// compact appends a compaction if a summary replaces a round that was read. It kept the messages after the
// round, and the description of the workspace.
func (r *reader) compact(entry transcript.Entry, end, round string) {
	s, found := r.texts[round]
	at, read := r.ends[round]
	if round == "" || !found || s.done || !read {
		return
	}
	r.texts[round] = summaryAt{text: s.text, done: true}
	body := &eventlog.Compaction{Summary: s.text}
	for _, context := range r.contexts {
		if context < at {
			body.KeptEventIDs = append(body.KeptEventIDs, r.messages[context])
		}
	}
	body.KeptEventIDs = append(body.KeptEventIDs, r.messages[at:]...)
	entry.ID += end
	r.session.Boundary(entry, body)
}

// late appends the results of calls of the request before. A request that reaches the limit of calls has the
// results of the last ones in the next.
func (r *reader) late(entry transcript.Entry, results map[string]transcript.Maybe[result]) (answered int) {
	open := r.open
	r.open = nil
	for _, c := range open {
		if r.answer(entry, "/result-"+c.ID, c, results) {
			answered++
		}
	}
	return answered
}

// changed are the files that a call of VS Code's own tools is to change.
func changed(tool string, arguments []byte) []string {
	var many struct {
		Input        transcript.Word                                `json:"input"`
		Replacements transcript.Maybe[[]transcript.Maybe[replaced]] `json:"replacements"`
	}
	switch tool {
	case "apply_patch":
		if transcript.Decode(arguments, &many) == nil {
			return transcript.PatchFiles(string(many.Input))
		}
	case "multi_replace_string_in_file":
		if transcript.Decode(arguments, &many) == nil {
			var files []string
			for _, r := range many.Replacements.Value {
				files = append(files, string(r.Value.Path))
			}
			return files
		}
	}
	return editors.Files(tool, arguments)
}

type replaced struct {
	Path transcript.Word `json:"filePath"`
}
