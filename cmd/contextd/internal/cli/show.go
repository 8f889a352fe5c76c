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
	projection := ""
	raw, projected, width := false, false, uint(0)
	cmd := &cobra.Command{
		Use:   "show SESSION",
		Short: "Compare the log with a recorded projection",
		Long: `Compare the log with a recorded projection, the newest if none is named: events on
the left, and on the right their messages, or what was done to them and why. --raw
shows only the log, --projected only the messages.`,
		Example: `  contextd show my-session
  contextd show my-session --projection p40-0001 --projected
  contextd show my-session --json | jq -r 'select(.decision) | [.event.seq, .decision] | @tsv'`,
	}
	cmd.RunE = c.runReading(func(cmd *cobra.Command, api api, args []string) error {
		session := args[0]
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
		if c.output.structured() {
			err = writeLines(cmd.OutOrStdout(), c.output, rows)
		} else {
			layout := sideBySide{width: widthOf(cmd, int(width)), onlyLeft: !projected, onlyRight: !raw}
			err = writeAlongside(cmd.OutOrStdout(), layout, shown, rows)
		}
		if projected {
			err = errors.Join(err, shown.check())
		}
		return err
	})
	sessionsFirst(cmd, cobra.ExactArgs(1))
	f := cmd.Flags()
	f.StringVar(&projection, "projection", "", "the recorded `projection`; the newest if not given")
	f.BoolVar(&raw, "raw", false, "show the log")
	f.BoolVar(&projected, "projected", false, "show the messages")
	f.UintVar(&width, "width", 0, "`columns` of the output; those of the terminal if not given")
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

// eventView is an event next to its message.
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

// shownRow is an event, a message, or both next to each other.
type shownRow struct {
	Event   *eventView   `json:"event,omitempty"`
	Message *messageView `json:"message,omitempty"`
	// Decision is what was decided on an event without a message.
	Decision string `json:"decision,omitempty"`
}

// alongside puts messages next to their events. A message that contextd wrote has a row of its own, at its
// place in the context. Reminders have rows at the end.
func alongside(events []*contextdv1.Event, shown rendered) []shownRow {
	fate := fates(shown)
	var rows []shownRow
	next := 0
	until := func(seq uint64) {
		for ; next < len(events) && events[next].GetSeq() < seq; next++ {
			e := viewEvent(events[next])
			rows = append(rows, shownRow{Event: e, Decision: fate(e)})
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

// decidedDropped begins the Decision of a dropped event.
const decidedDropped = "dropped"

// fates returns what was decided on events without a message.
func fates(shown rendered) func(*eventView) string {
	if shown.replay == nil {
		return func(*eventView) string { return "" }
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
		why = decidedDropped + "; summary " + p.GetSummaryId() + " replaces it"
	}
	return func(e *eventView) string {
		seq, m := e.Seq, at[e.Seq]
		switch {
		case seq > p.GetAsOfSeq():
			return "came after the projection"
		case m != nil && m.GetOrigin() == contextdv1.Origin_ORIGIN_REMINDER:
			return fmt.Sprintf("reminder, at the end as message %d", m.GetIndex())
		case m != nil:
			return fmt.Sprintf("part of message %d", m.GetIndex())
		case dropped[seq] && e.Kind == "reminder":
			return decidedDropped + "; it holds no more"
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
