package cli

import (
	"fmt"
	"os"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/timestamppb"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// oneLine makes a text fit into a cell: characters that cannot be printed, which could move the terminal's cursor,
// become blanks, and it ends at limit runes; 0 is no limit.
func oneLine(s string, limit int) string {
	var b strings.Builder
	n := 0
	for _, r := range s {
		if limit > 0 && n == limit {
			b.WriteRune('…')
			break
		}
		if !unicode.IsPrint(r) {
			r = ' '
		}
		b.WriteRune(r)
		n++
	}
	return b.String()
}

func when(t *timestamppb.Timestamp) string {
	if t == nil {
		return "-"
	}
	return t.AsTime().Format(time.RFC3339)
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// counted is a number with its unit: 1 event, 2 events.
func counted[N int | int64 | uint32 | uint64](n N, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprint(n, " ", one, "s")
}

func labels(m map[string]string) string {
	var parts []string
	for _, k := range sortedKeys(m) {
		parts = append(parts, k+"="+m[k])
	}
	return dash(strings.Join(parts, ","))
}

// style colours text for terminals.
type style struct{ colour bool }

// styleOf uses colours on a terminal unless NO_COLOR is set (no-color.org).
func styleOf(cmd *cobra.Command) style {
	return style{os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && terminalOf(cmd.OutOrStdout()) != nil}
}

var stateColours = map[contextdv1.BudgetState]string{
	contextdv1.BudgetState_BUDGET_STATE_GREEN:  "\x1b[32m",
	contextdv1.BudgetState_BUDGET_STATE_YELLOW: "\x1b[33m",
	contextdv1.BudgetState_BUDGET_STATE_RED:    "\x1b[31m",
}

func (s style) state(state contextdv1.BudgetState) string {
	name := strings.ToLower(strings.TrimPrefix(state.String(), "BUDGET_STATE_"))
	colour, ok := stateColours[state]
	if !s.colour || !ok {
		return name
	}
	return colour + name + "\x1b[0m"
}
