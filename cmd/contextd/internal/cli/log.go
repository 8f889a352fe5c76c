package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

func newLog(c *client) *cobra.Command {
	req := &contextdv1.ReadEventsRequest{}
	cmd := &cobra.Command{
		Use:   "log SESSION",
		Short: "Show the events of a session",
		Example: `  contextd log my-session --from 40
  contextd log my-session --follow
  contextd log my-session --json | jq .message.role`,
		Args: cobra.ExactArgs(1),
		RunE: c.run(func(cmd *cobra.Command, api api, args []string) error {
			req.SessionId = args[0]
			stream, err := api.ReadEvents(cmd.Context(), req)
			if err != nil {
				return err
			}
			out := newEventTable(cmd)
			for {
				resp, err := stream.Recv()
				if errors.Is(err, io.EOF) || cmd.Context().Err() != nil {
					return nil //nolint:nilerr // an interrupt is how a follower ends
				}
				if err != nil {
					return err
				}
				if err := c.writeEvents(cmd, out, resp.GetEvents()); err != nil {
					return err
				}
			}
		}),
	}
	f := cmd.Flags()
	f.Uint64Var(&req.FromSeq, "from", 0, "first `event`")
	f.Uint64Var(&req.ToSeq, "to", 0, "last `event`; 0 for the newest")
	f.BoolVarP(&req.Follow, "follow", "f", false, "keep showing what is appended")
	return cmd
}

func (c *client) writeEvents(cmd *cobra.Command, out *eventTable, events []*contextdv1.Event) error {
	for _, e := range events {
		if c.output.structured() {
			if err := c.output.write(cmd.OutOrStdout(), e); err != nil {
				return err
			}
			continue
		}
		out.row(e)
	}
	if c.output.structured() {
		return nil
	}
	// Each message of the stream is shown as it comes.
	return out.w.Flush()
}

// eventTable has columns of fixed width, because its rows may be minutes apart.
type eventTable struct {
	w      *tabwriter.Writer
	header bool
}

func newEventTable(cmd *cobra.Command) *eventTable {
	return &eventTable{w: tabwriter.NewWriter(cmd.OutOrStdout(), 6, 0, 2, ' ', 0)}
}

// contentRunes is how much of an event's content a row shows.
const contentRunes = 100

func (t *eventTable) row(e *contextdv1.Event) {
	if !t.header {
		fmt.Fprintln(t.w, "SEQ\tTURN\tTIME\tKIND\tCONTENT")
		t.header = true
	}
	kind, content := describe(e)
	fmt.Fprintf(t.w, "%d\t%d\t%s\t%-10s\t%s\n", e.GetSeq(), e.GetTurn(), when(e.GetTime()), kind, strings.TrimSpace(oneLine(content, contentRunes)))
}

func describe(e *contextdv1.Event) (kind, content string) {
	switch k := e.GetKind().(type) {
	case *contextdv1.Event_Message:
		role := strings.ToLower(strings.TrimPrefix(k.Message.GetRole().String(), "ROLE_"))
		return role, describeBlocks(k.Message.GetBlocks())
	case *contextdv1.Event_Reminder:
		return "reminder", k.Reminder.GetBody()
	case *contextdv1.Event_Compaction:
		return "compaction", k.Compaction.GetSummary()
	case *contextdv1.Event_Custom:
		return "custom", k.Custom.GetType() + " " + string(k.Custom.GetJson())
	default:
		return "-", ""
	}
}

func describeBlocks(blocks []*contextdv1.Block) string {
	var parts []string
	for _, b := range blocks {
		parts = append(parts, describeBlock(b))
	}
	return strings.Join(parts, " · ")
}

func describeBlock(b *contextdv1.Block) string {
	switch k := b.GetKind().(type) {
	case *contextdv1.Block_Text:
		return k.Text.GetText()
	case *contextdv1.Block_Thinking:
		return "(thinking) " + k.Thinking.GetText()
	case *contextdv1.Block_ToolCall:
		return k.ToolCall.GetName() + "(" + string(k.ToolCall.GetArgumentsJson()) + ")"
	case *contextdv1.Block_ToolResult:
		mark := "→ "
		if k.ToolResult.GetIsError() {
			mark = "→ failed: "
		}
		return mark + describeBlocks(k.ToolResult.GetContent())
	case *contextdv1.Block_Media:
		return fmt.Sprintf("(%s, %d bytes) %s", dash(k.Media.GetMimeType()), len(k.Media.GetData()), k.Media.GetUri())
	case *contextdv1.Block_Provider:
		return "(" + k.Provider.GetProvider() + ") " + string(k.Provider.GetJson())
	default:
		return ""
	}
}
