package cli

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
)

func newDiff(c *client) *cobra.Command {
	var from, to string
	width, all := uint(0), false
	cmd := &cobra.Command{
		Use:   "diff SESSION --from PROJECTION [--to PROJECTION]",
		Short: "Show what changed between two recorded projections, side by side",
		Long: `Show what changed between two recorded projections, side by side: messages that are
the same to the byte, changed (~), new (+) and gone (-), each with its events, its
tokens and what was done to it by which reducer or policy.

Both are rebuilt from the log. The exit code is 1 where one of them differs from what
was sent then.`,
		Example: `  contextd diff my-session --from p40-0001 --to p44-0001
  contextd diff my-session --from p40-0001 --json | jq 'select(.change != "same")'`,
	}
	cmd.RunE = c.runReading(func(cmd *cobra.Command, api api, args []string) error {
		session := args[0]
		before, err := render(cmd.Context(), api, session, from)
		if err != nil {
			return err
		}
		after, err := render(cmd.Context(), api, session, to)
		if err != nil {
			return err
		}
		changes := changesBetween(before, after)
		if c.output.structured() {
			err = writeLines(cmd.OutOrStdout(), c.output, changes)
		} else {
			err = writeChanges(cmd, before, after, changes, widthOf(cmd, int(width)), all)
		}
		return errors.Join(err, before.check(), after.check())
	})
	sessionsFirst(cmd, cobra.ExactArgs(1))
	f := cmd.Flags()
	f.StringVar(&from, "from", "", "the `projection` on the left")
	f.StringVar(&to, "to", "", "the `projection` on the right; the newest if not given")
	cobra.CheckErr(cmd.MarkFlagRequired("from"))
	f.UintVar(&width, "width", 0, "`columns` of the output; those of the terminal if not given")
	f.BoolVar(&all, "all", false, "show every message that is the same as well")
	complete(cmd, "from", c.completeProjection)
	complete(cmd, "to", c.completeProjection)
	return cmd
}

// change is a message of one context, of the other, or of both.
type change struct {
	Change string       `json:"change"` // same, changed, new or gone
	From   *messageView `json:"from,omitempty"`
	To     *messageView `json:"to,omitempty"`
}

const (
	changeSame    = "same"
	changeChanged = "changed"
	changeNew     = "new"
	changeGone    = "gone"
)

var changeMarks = map[string]string{changeSame: "", changeChanged: "~", changeNew: "+", changeGone: "-"}

// messageKey identifies a message across two contexts. Messages of the same event are the same, and messages
// that contextd wrote for the same purpose.
type messageKey struct {
	origin string
	cause  string
	seq    uint64
	nth    int
}

func (r rendered) keys() []messageKey {
	seen := map[messageKey]int{}
	keys := make([]messageKey, len(r.messages))
	for i, m := range r.messages {
		var k messageKey
		if seqs := m.GetSourceSeqs(); len(seqs) > 0 {
			k.seq = seqs[0]
		} else {
			k.origin, k.cause = m.GetOrigin().String(), m.GetCause()
		}
		n := seen[k]
		seen[k]++
		k.nth = n
		keys[i] = k
	}
	return keys
}

// changesBetween merges the messages of two contexts, keeping the order of both.
func changesBetween(from, to rendered) []change {
	fromKeys, toKeys := from.keys(), to.keys()
	fromReasons, toReasons := from.reasons(), to.reasons()
	// The messages of each context that are still to come.
	inFrom, inTo := map[messageKey]bool{}, map[messageKey]bool{}
	for _, k := range fromKeys {
		inFrom[k] = true
	}
	for _, k := range toKeys {
		inTo[k] = true
	}
	var out []change
	i, j := 0, 0
	for i < len(fromKeys) || j < len(toKeys) {
		switch {
		case i < len(fromKeys) && j < len(toKeys) && fromKeys[i] == toKeys[j]:
			c := change{changeChanged, from.view(i, fromReasons), to.view(j, toReasons)}
			if bytes.Equal(from.messages[i].GetJson(), to.messages[j].GetJson()) {
				c.Change = changeSame
			}
			out = append(out, c)
			i++
			j++
		case i < len(fromKeys) && (j == len(toKeys) || !inTo[fromKeys[i]] || inFrom[toKeys[j]]):
			// Gone, or moved: a moved message is listed as new at its new place.
			out = append(out, change{changeGone, from.view(i, fromReasons), nil})
			delete(inFrom, fromKeys[i])
			i++
		default:
			out = append(out, change{changeNew, nil, to.view(j, toReasons)})
			delete(inTo, toKeys[j])
			j++
		}
	}
	return out
}

// foldFrom is how many unchanged messages in a row are folded into one line.
const foldFrom = 3

func writeChanges(cmd *cobra.Command, before, after rendered, changes []change, width int, all bool) error {
	counts := map[string]int{}
	var rows []sideRow
	for i := 0; i < len(changes); {
		run, tokens := 0, 0
		for i+run < len(changes) && changes[i+run].Change == changeSame {
			tokens += int(changes[i+run].To.Tokens)
			run++
		}
		if run >= foldFrom && !all {
			text := fmt.Sprintf("%6d  … %s, the same", tokens, counted(run, "message"))
			rows = append(rows, sideRow{left: text, right: text})
			counts[changeSame] += run
			i += run
			continue
		}
		c := changes[i]
		counts[c.Change]++
		row := sideRow{mark: changeMarks[c.Change], left: c.From.String(), right: c.To.String()}
		if c.To != nil {
			row.events = seqsText(c.To.Seqs)
		} else {
			row.events = seqsText(c.From.Seqs)
		}
		rows = append(rows, row)
		i++
	}
	header := sideRow{events: "EVENTS", left: "TOKENS  " + before.id(), right: "TOKENS  " + after.id()}
	if err := (sideBySide{width: width}).write(cmd.OutOrStdout(), header, rows); err != nil {
		return err
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "\n%s the same, %d changed, %d new, %d gone; %s, then %d\n",
		counted(counts[changeSame], "message"), counts[changeChanged], counts[changeNew], counts[changeGone], counted(before.tokens(), "token"), after.tokens())
	return err
}
