package reduce

import (
	"fmt"
	"strings"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
)

// Summary is a text that replaces the front of a conversation. It is written
// in the background; a pipeline only chooses among those that it is given.
type Summary struct {
	ID string
	// Through is the last event that it covers: every group that begins up to it.
	Through eventlog.Seq
	// By is who wrote it.
	By   string
	Text string
}

// quotedShare is the largest part of the target that the text of a summary may
// take, whoever wrote it.
const quotedShare = 0.25

// quote sets the text off line by line, so that nothing in it can end the
// quotation and speak for the system or the user.
func (s Summary) quote() string {
	if s.ID == "" {
		return ""
	}
	var out strings.Builder
	fmt.Fprintf(&out, titleSummary+"%d, by %s:\n", s.Through, oneLine(s.By))
	out.WriteString(quoteLines(strings.TrimSpace(s.Text)))
	return out.String()
}

// quoteLines sets every line of a text off.
func quoteLines(text string) string {
	if text == "" {
		return ""
	}
	return "> " + quotedEnds.Replace(text) + "\n"
}

// quotedEnds begins a quoted line after everything that a reader may take for the end of one.
var quotedEnds = strings.NewReplacer("\r\n", "\n> ", "\r", "\n> ", "\n", "\n> ", "\v", "\n> ", "\f", "\n> ", "\u0085", "\n> ", "\u2028", "\n> ", "\u2029", "\n> ")

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// summaries are those a pipeline may use, oldest first.
type summaries []Summary

// byID is the zero Summary where there is none.
func (all summaries) byID(id string) Summary {
	for _, s := range all {
		if s.ID == id {
			return s
		}
	}
	return Summary{}
}

// newest is the one that covers most among those that end by event through and fit,
// or the zero Summary.
func (all summaries) newest(through eventlog.Seq, limit uint64, gauge budget.Gauge) Summary {
	var best Summary
	for _, s := range all {
		if s.Through <= through && s.Through >= best.Through && gauge.Text(s.quote()) <= limit {
			best = s
		}
	}
	return best
}
