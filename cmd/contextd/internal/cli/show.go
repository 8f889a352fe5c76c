package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

func newShow(c *client) *cobra.Command {
	var session, projection string
	raw, projected, width := false, false, 0
	cmd := &cobra.Command{
		Use:   "show --session SESSION",
		Short: "Show the log beside what a recorded projection shows of it",
		Long: `Show the log beside what a recorded projection shows of it, the newest where none
is named: an event on the left and on the right its message, or what became of it
and why. --raw shows the log alone, --projected the messages alone.`,
		Example: `  contextd show --session my-session
  contextd show --session my-session --projection p40-0001 --projected
  contextd show --session my-session --json | jq -r 'select(.decision) | [.event.seq, .decision] | @tsv'`,
		Args: cobra.NoArgs,
	}
	cmd.RunE = c.run(func(cmd *cobra.Command, api api, _ []string) error {
		if session == "" {
			return usageError{errors.New("--session must name the session")}
		}
		if raw == projected {
			raw, projected = true, true
		}
		var events []*contextdv1.Event
		var shown rendered
		var err error
		if raw {
			if events, err = readAll(cmd, api, session); err != nil {
				return err
			}
		}
		if projected {
			if shown, err = render(cmd.Context(), api, session, projection); err != nil {
				return err
			}
		}
		rows := alongside(events, shown)
		if c.json {
			err = writeLines(cmd.OutOrStdout(), rows)
		} else {
			layout := sideBySide{width: widthOf(cmd, width), onlyLeft: !projected, onlyRight: !raw}
			err = writeAlongside(cmd.OutOrStdout(), layout, shown, rows)
		}
		if projected {
			err = errors.Join(err, shown.check())
		}
		return err
	})
	f := cmd.Flags()
	f.StringVar(&session, "session", "", "the `session`")
	f.StringVar(&projection, "projection", "", "the recorded `projection`; the newest where left out")
	f.BoolVar(&raw, "raw", false, "show the log")
	f.BoolVar(&projected, "projected", false, "show the messages")
	f.IntVar(&width, "width", 0, "`columns` of the output; those of the terminal where left out")
	return cmd
}

func readAll(cmd *cobra.Command, api api, session string) ([]*contextdv1.Event, error) {
	stream, err := api.ReadEvents(cmd.Context(), &contextdv1.ReadEventsRequest{SessionId: session})
	if err != nil {
		return nil, err
	}
	var events []*contextdv1.Event
	for {
		resp, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return events, nil
		}
		if err != nil {
			return nil, err
		}
		events = append(events, resp.GetEvents()...)
	}
}

// eventView is an event as it stands beside its message.
type eventView struct {
	Seq  uint64 `json:"seq"`
	Turn uint32 `json:"turn"`
	Kind string `json:"kind"`
	Line string `json:"line"`
}

func viewEvent(e *contextdv1.Event) *eventView {
	kind, content := describe(e)
	return &eventView{e.GetSeq(), e.GetTurn(), kind, strings.TrimSpace(oneLine(content, contentRunes))}
}

// shownRow is an event, a message, or both.
type shownRow struct {
	Event   *eventView   `json:"event,omitempty"`
	Message *messageView `json:"message,omitempty"`
	// Decision is what became of an event that has no message beside it.
	Decision string `json:"decision,omitempty"`
}

// alongside lays messages beside the events that they were made of. A message that
// contextd wrote has a row of its own where it stands in the context; so have
// reminders, behind everything.
func alongside(events []*contextdv1.Event, shown rendered) []shownRow {
	fate := fates(shown)
	var rows []shownRow
	next := 0
	until := func(seq uint64) {
		for ; next < len(events) && events[next].GetSeq() < seq; next++ {
			e := viewEvent(events[next])
			rows = append(rows, shownRow{Event: e, Decision: fate(e.Seq)})
		}
	}
	reasons := shown.reasons()
	asOf := shown.replay.GetRecorded().GetAsOfSeq()
	for i, m := range shown.messages {
		row := shownRow{Message: shown.view(i, reasons)}
		switch seqs := m.GetSourceSeqs(); {
		case m.GetOrigin() == contextdv1.Origin_ORIGIN_REMINDER:
			until(asOf + 1)
		case len(seqs) > 0:
			until(seqs[0])
			if next < len(events) && events[next].GetSeq() == seqs[0] {
				row.Event = viewEvent(events[next])
				next++
			}
		}
		rows = append(rows, row)
	}
	if len(events) > 0 {
		until(events[len(events)-1].GetSeq() + 1)
	}
	return rows
}

// decidedDropped is how the decision on an event that left begins.
const decidedDropped = "dropped"

// fates says what became of events that have no message beside them.
func fates(shown rendered) func(seq uint64) string {
	if shown.replay == nil {
		return func(uint64) string { return "" }
	}
	p := shown.replay.GetReplayed()
	dropped := seqSet(p.GetDroppedSeqs())
	at := map[uint64]*contextdv1.RenderedMessage{}
	for _, m := range shown.messages {
		for _, seq := range m.GetSourceSeqs() {
			at[seq] = m
		}
	}
	why := decidedDropped + "; its calls are named"
	if p.GetSummaryId() != "" {
		why = decidedDropped + "; summary " + p.GetSummaryId() + " stands for it"
	}
	return func(seq uint64) string {
		m := at[seq]
		switch {
		case seq > p.GetAsOfSeq():
			return "came after the projection"
		case m != nil && m.GetOrigin() == contextdv1.Origin_ORIGIN_REMINDER:
			return fmt.Sprintf("reminder, at the end as message %d", m.GetIndex())
		case m != nil:
			return fmt.Sprintf("part of message %d", m.GetIndex())
		case dropped[seq]:
			return why
		default:
			return "not shown"
		}
	}
}

func writeAlongside(w io.Writer, layout sideBySide, shown rendered, rows []shownRow) error {
	header := sideRow{events: "EVENTS", left: "LOG", right: "TOKENS  " + shown.id()}
	out := make([]sideRow, len(rows))
	for i, r := range rows {
		var row sideRow
		if r.Event != nil {
			row.events, row.left = fmt.Sprint(r.Event.Seq), r.Event.Kind+": "+r.Event.Line
		}
		switch {
		case r.Message != nil:
			row.right = r.Message.String()
			if row.events == "" {
				row.events = seqsText(r.Message.Seqs)
			}
			row.mark = r.Message.mark()
		case r.Decision != "":
			row.right = "     -  " + r.Decision
			if strings.HasPrefix(r.Decision, decidedDropped) {
				row.mark = "-"
			}
		}
		out[i] = row
	}
	return layout.write(w, header, out)
}
