package cli

import (
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// style colours text where a person looks at it.
type style struct{ colour bool }

// styleOf colours a terminal's output unless NO_COLOR is set (no-color.org).
func styleOf(cmd *cobra.Command) style {
	f, ok := cmd.OutOrStdout().(*os.File)
	return style{ok && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(f.Fd()))}
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
