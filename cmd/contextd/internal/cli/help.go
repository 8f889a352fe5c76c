package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/contextd/contextd/cmd/contextd/internal/config"
)

// Topics of flags that many commands share. A flag without a topic belongs to its command alone.
const (
	topicBudget     = "Budget and policy"
	topicConnection = "Which daemon, or which directory"
)

// usage writes the usage of a command as cobra does, with the flags grouped by topic.
func usage(cmd *cobra.Command) error {
	w := cmd.OutOrStderr()
	fmt.Fprint(w, "Usage:")
	if !cmd.HasAvailableSubCommands() {
		fmt.Fprintf(w, "\n  %s", cmd.UseLine())
	} else {
		fmt.Fprintf(w, "\n  %s [command]", cmd.CommandPath())
	}
	if len(cmd.Aliases) > 0 {
		fmt.Fprintf(w, "\n\nAliases:\n  %s", cmd.NameAndAliases())
	}
	if cmd.HasExample() {
		fmt.Fprintf(w, "\n\nExamples:\n%s", cmd.Example)
	}
	if cmd.HasAvailableSubCommands() {
		groups := cmd.Groups()
		if len(groups) == 0 {
			groups = []*cobra.Group{{Title: "Commands:"}}
		}
		for _, group := range groups {
			fmt.Fprintf(w, "\n\n%s", group.Title)
			for _, sub := range cmd.Commands() {
				if sub.GroupID == group.ID && (sub.IsAvailableCommand() || sub.Name() == "help") {
					fmt.Fprintf(w, "\n  %-*s %s", sub.NamePadding(), sub.Name(), sub.Short)
				}
			}
		}
	}
	for _, topic := range flagsByTopic(cmd) {
		fmt.Fprintf(w, "\n\n%s:\n%s", topic.Name(), strings.TrimRight(topic.FlagUsages(), "\n"))
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(w, "\n\n\"%s COMMAND --help\" says more of a command.\n", cmd.CommandPath())
	} else {
		fmt.Fprint(w, "\n\n\"contextd help\" lists the exit codes.\n")
	}
	return nil
}

// flagsByTopic groups the flags of a command: first its own, then each topic in the order of its first flag,
// then the flags for the connection, which nearly all commands have.
func flagsByTopic(cmd *cobra.Command) []*pflag.FlagSet {
	own := pflag.NewFlagSet("Flags", pflag.ContinueOnError)
	byTopic, all := map[string]*pflag.FlagSet{"": own}, []*pflag.FlagSet{own}
	last := false
	add := func(flag *pflag.Flag) {
		topic := config.Topic(flag)
		if (topic == topicConnection) != last {
			return
		}
		if byTopic[topic] == nil {
			byTopic[topic] = pflag.NewFlagSet(topic, pflag.ContinueOnError)
			byTopic[topic].SortFlags = false
			all = append(all, byTopic[topic])
		}
		byTopic[topic].AddFlag(flag)
	}
	for _, last = range []bool{false, true} {
		cmd.LocalFlags().VisitAll(add)
		cmd.InheritedFlags().VisitAll(add)
	}
	return all
}
