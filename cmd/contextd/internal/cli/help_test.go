package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TestHelpIsComplete: the help of every command has an example, and says for each flag with a number or a
// text what its value is.
func TestHelpIsComplete(t *testing.T) {
	root := Program{LookupEnv: func(string) (string, bool) { return "", false }}.newRoot()
	var check func(*cobra.Command)
	check = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			if sub.Name() != "help" && sub.Name() != "completion" {
				check(sub)
			}
		}
		if cmd != root && cmd.Parent() == root && cmd.GroupID == "" {
			t.Errorf("%s is in no group", cmd.CommandPath())
		}
		if !cmd.HasSubCommands() && !strings.Contains(cmd.Example, cmd.CommandPath()) {
			t.Errorf("%s has no example", cmd.CommandPath())
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			name, usage := pflag.UnquoteUsage(f)
			unnamed := []string{"uint", "uint32", "int", "float", "string", "strings"}
			if !f.Hidden && (usage == "" || slices.Contains(unnamed, name)) {
				t.Errorf("%s --%s takes %s: %s", cmd.CommandPath(), f.Name, name, usage)
			}
		})
	}
	check(root)
}
