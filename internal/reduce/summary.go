package reduce

import (
	"fmt"
	"strings"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/quote"
)

// Summary is a text that replaces the oldest groups of a conversation. A pipeline writes none: it chooses among those
// that it is given.
type Summary struct {
	ID string
	// Through is the last event of the summarised span: the summary covers every group that begins up to it.
	Through eventlog.Seq
	// By is the name of who wrote it.
	By   string
	Text string
}

// quotedShare is the largest part of the target that a quoted summary may take, whoever wrote it.
const quotedShare = 0.25

// quote returns a heading and the text with each line marked as quoted, so that nothing in it can end the
// quotation and speak for the system or the user.
func (s Summary) quote() string {
	if s.ID == "" {
		return ""
	}
	var out strings.Builder
	fmt.Fprintf(&out, titleSummary+"%d, by %s:\n", s.Through, quote.Line(s.By))
	out.WriteString(quote.Lines(strings.TrimSpace(s.Text)))
	return out.String()
}

// summaries are the summaries that a pipeline may use, oldest first.
type summaries []Summary

// byID returns the summary with an id; zero if there is none.
func (all summaries) byID(id string) Summary {
	for _, s := range all {
		if s.ID == id {
			return s
		}
	}
	return Summary{}
}

// newest returns the summary that covers most, of those that end at event through or before and fit limit; zero if
// there is none.
func (all summaries) newest(through eventlog.Seq, limit uint64, gauge budget.Gauge) Summary {
	var best Summary
	for _, s := range all {
		if s.Through <= through && s.Through >= best.Through && gauge.Text(s.quote()) <= limit {
			best = s
		}
	}
	return best
}
