package cli

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/contextd/contextd/cmd/contextd/internal/page"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

func newLog(c *client) *cobra.Command {
	req := &contextdv1.ReadEventsRequest{}
	full, grep, since := false, "", ""
	cmd := &cobra.Command{
		Use:   "log SESSION",
		Short: "Show the events of a session",
		Long: `Show the events of a session, one on a line. --full shows all that each of them says;
--grep and --since leave out the others, in every output and with --follow too.`,
		Example: `  contextd log my-session --from 40
  contextd log my-session --full --grep '(?i)permission denied'
  contextd log my-session --since 2h
  contextd log my-session --follow
  contextd log my-session --json | jq .message.role`,
		Args: cobra.ExactArgs(1),
		PreRunE: func(*cobra.Command, []string) error {
			if req.GetFollow() && c.embedded != "" {
				return usageError{errors.New("--follow cannot be set with --embedded: nothing is appended to a store while a command has it")}
			}
			return nil
		},
		RunE: c.runReading(func(cmd *cobra.Command, api api, args []string) error {
			req.SessionId = args[0]
			wanted, err := newEventFilter(grep, since, time.Now())
			if err != nil {
				return err
			}
			stream, err := api.ReadEvents(cmd.Context(), req)
			if err != nil {
				return err
			}
			out := newEventTable(cmd)
			out.full = full
			for some := false; ; some = true {
				resp, err := stream.Recv()
				if errors.Is(err, io.EOF) && !some && req.GetFromSeq() > 0 {
					return noteHead(cmd, api, req)
				}
				if errors.Is(err, io.EOF) || cmd.Context().Err() != nil {
					return nil //nolint:nilerr // an interrupt is how a follower ends
				}
				if err != nil {
					return err
				}
				if err := c.writeEvents(cmd, out, slices.DeleteFunc(resp.GetEvents(), wanted.leavesOut)); err != nil {
					return err
				}
			}
		}),
	}
	f := cmd.Flags()
	f.Uint64Var(&req.FromSeq, "from", 0, "first `event`")
	f.Uint64Var(&req.ToSeq, "to", 0, "last `event`; 0 for the newest")
	f.BoolVarP(&req.Follow, "follow", "f", false, "keep showing what is appended")
	f.BoolVar(&full, "full", false, "show all that the events say")
	f.StringVar(&grep, "grep", "", "only events of which this regular `expression` matches something (github.com/google/re2/wiki/Syntax)")
	f.StringVar(&since, "since", "", "only events from this `time` on: 2026-03-01, 2026-03-01T09:00:00Z, or 2h for two hours ago")
	return cmd
}

// noteHead says where a session ends if that is before the first event that was asked for.
func noteHead(cmd *cobra.Command, api api, req *contextdv1.ReadEventsRequest) error {
	resp, err := api.GetSession(cmd.Context(), &contextdv1.GetSessionRequest{SessionId: req.GetSessionId()})
	if head := resp.GetSession().GetHeadSeq(); err == nil && head < req.GetFromSeq() {
		fmt.Fprintf(cmd.ErrOrStderr(), "session %q has %s, none from --from %d on\n", req.GetSessionId(), counted(head, "event"), req.GetFromSeq())
	}
	return err
}

// eventFilter selects events.
type eventFilter struct {
	grep  func(content string) bool // nil for any
	since time.Time                 // zero for any
}

func newEventFilter(grep, since string, now time.Time) (f eventFilter, err error) {
	if grep != "" {
		if f.grep, err = grepper(grep); err != nil {
			return f, usageError{fmt.Errorf("--grep: %w", err)}
		}
	}
	if since == "" {
		return f, nil
	}
	if ago, err := time.ParseDuration(since); err == nil && ago >= 0 {
		f.since = now.Add(-ago)
		return f, nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if f.since, err = time.Parse(layout, since); err == nil {
			return f, nil
		}
	}
	return f, usageError{fmt.Errorf("--since: %q is no time such as 2026-03-01 or 2026-03-01T09:00:00Z, and no duration such as 2h", since)}
}

// largestProgram is how many instructions the expression of --grep may compile to. Matching costs up to that
// many steps per byte of the log.
const largestProgram = 1000

// grepper matches an expression. A literal text may have any length, since the cost of finding it does not
// grow with its length.
func grepper(expression string) (func(string) bool, error) {
	parsed, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return nil, err
	}
	parsed = parsed.Simplify()
	if parsed.Op == syntax.OpLiteral && parsed.Flags&syntax.FoldCase == 0 {
		text := string(parsed.Rune)
		return func(content string) bool { return strings.Contains(content, text) }, nil
	}
	program, err := syntax.Compile(parsed)
	if err != nil {
		return nil, err
	}
	if n := len(program.Inst); n > largestProgram {
		return nil, fmt.Errorf("the expression compiles to %d instructions, and more than %d take too long; shorten it, or leave out large repetitions", n, largestProgram)
	}
	compiled, err := regexp.Compile(expression)
	if err != nil {
		return nil, err
	}
	return compiled.MatchString, nil
}

// leavesOut reports whether to skip an event. An event without a time does not match --since.
func (f eventFilter) leavesOut(e *contextdv1.Event) bool {
	if !f.since.IsZero() && (e.GetTime() == nil || e.GetTime().AsTime().Before(f.since)) {
		return true
	}
	if f.grep == nil {
		return false
	}
	_, content := describe(e)
	return !f.grep(content)
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
	// Show the events of each message of the stream as they arrive.
	return out.w.Flush()
}

// eventTable has columns of fixed width, because its rows may be minutes apart.
type eventTable struct {
	w      *tabwriter.Writer
	header bool
	full   bool // write all content of an event, on several lines
}

func newEventTable(cmd *cobra.Command) *eventTable {
	return &eventTable{w: tabwriter.NewWriter(cmd.OutOrStdout(), 6, 0, 2, ' ', 0)}
}

// contentRunes is how much of an event's content a row shows.
const contentRunes = 100

func (t *eventTable) row(e *contextdv1.Event) {
	if t.full {
		t.whole(e)
		return
	}
	if !t.header {
		fmt.Fprintln(t.w, "SEQ\tTURN\tTIME\tKIND\tCONTENT")
		t.header = true
	}
	kind, content := describe(e)
	fmt.Fprintf(t.w, "%d\t%d\t%s\t%-10s\t%s\n", e.GetSeq(), e.GetTurn(), when(e.GetTime()), kind, strings.TrimSpace(oneLine(content, contentRunes)))
}

// whole writes all content of an event. Control characters are escaped, since they could move the terminal's
// cursor.
func (t *eventTable) whole(e *contextdv1.Event) {
	entry := eventEntry(e)
	if t.header {
		fmt.Fprintln(t.w)
	}
	t.header = true
	fmt.Fprintf(t.w, "%s: %s\n", entry.kind, oneLine(strings.Join(append([]string{entry.head}, entry.notes...), ", "), 0))
	for _, p := range entry.parts {
		if p.label != "" {
			fmt.Fprintf(t.w, "  [%s]\n", strings.Join(strings.Fields(page.Visible(p.label)), " ")) // the name of a tool may have lines
		}
		if p.text == "" {
			continue
		}
		for line := range strings.SplitSeq(strings.TrimSuffix(page.Visible(p.text), "\n"), "\n") {
			fmt.Fprintf(t.w, "  %s\n", strings.ReplaceAll(line, "\t", "    ")) // a tab would end the column
		}
	}
}

func describe(e *contextdv1.Event) (kind, content string) {
	switch k := e.GetKind().(type) {
	case *contextdv1.Event_Message:
		role := strings.ToLower(strings.TrimPrefix(k.Message.GetRole().String(), "ROLE_"))
		return role, describeBlocks(k.Message.GetBlocks())
	case *contextdv1.Event_Reminder:
		return "reminder", k.Reminder.GetBody()
	case *contextdv1.Event_Compaction:
		return "compaction", describeCompaction(k.Compaction)
	case *contextdv1.Event_Custom:
		return "custom", k.Custom.GetType() + " " + string(k.Custom.GetJson())
	default:
		return "-", ""
	}
}

// describeCompaction is a compaction's summary. One that reverts others has none and says which.
func describeCompaction(c *contextdv1.Compaction) string {
	undoes := c.GetDecision().GetUndoesSeq()
	if undoes == 0 {
		return c.GetSummary()
	}
	return fmt.Sprintf("reverts the compaction of event %d and all later ones", undoes)
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
