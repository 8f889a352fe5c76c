package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

func newAssemble(c *client) *cobra.Command {
	req := &contextdv1.AssembleContextRequest{}
	var settings requestSettings
	var asOf uint64
	explain := false
	format := formatFlag{&req.Format}
	cmd := &cobra.Command{
		Use:   "assemble SESSION",
		Short: "Assemble the context of the next model call",
		Long: `Assemble the context of the next model call and print its messages, one JSON
object per line: exactly the bytes that the prefix hash is taken over.

--explain prints what was kept, stubbed, clipped and dropped instead, and why.
--json prints every part of the answer as the API sends it.`,
		Example: `  contextd assemble my-session --max-tokens 32k
  contextd assemble my-session --max-tokens 32k --explain
  contextd assemble my-session --format anthropic
  contextd assemble my-session --as-of 40 --preview | sha256sum`,
		Args: cobra.ExactArgs(1),
	}
	cmd.PreRun = func(*cobra.Command, []string) { c.reads = req.Preview }
	cmd.RunE = c.run(func(cmd *cobra.Command, api api, args []string) (err error) {
		req.SessionId = args[0]
		if cmd.Flags().Changed("as-of") {
			req.AsOfSeq = &asOf
		}
		if req.Budget, req.Policy, err = settings.resolve(); err != nil {
			return err
		}
		c.noteFamily(cmd, req.GetBudget().GetModel())
		// Returning early, as when printing fails, ends the stream.
		ctx, cancel := context.WithCancel(cmd.Context())
		defer cancel()
		stream, err := api.AssembleContext(ctx, req)
		if err != nil {
			return err
		}
		if explain && !c.output.structured() {
			return c.explain(cmd, stream.Recv)
		}
		return c.printContext(cmd, stream.Recv)
	})
	f := cmd.Flags()
	settings.bind(f)
	f.Var(format, "format", "`format` of the messages: "+strings.Join(formatNames(), ", "))
	f.Uint64Var(&asOf, "as-of", 0, "assemble the log as of this `event`")
	f.BoolVar(&req.Preview, "preview", false, "record nothing")
	f.BoolVar(&explain, "explain", false, "print the decisions instead of the messages")
	return cmd
}

// receive is the receiving end of an assembly.
type receive func() (*contextdv1.AssembleContextResponse, error)

func (c *client) printContext(cmd *cobra.Command, next receive) error {
	out := bufio.NewWriter(inertOn(cmd.OutOrStdout()))
	for {
		resp, err := next()
		if errors.Is(err, io.EOF) {
			return out.Flush()
		}
		if err != nil {
			return errors.Join(out.Flush(), err)
		}
		c.noteModel(cmd, resp.GetHeader().GetBudget().GetUnknownModel())
		if c.output.structured() {
			if err := c.output.write(out, resp); err != nil {
				return err
			}
			continue
		}
		for _, m := range resp.GetChunk().GetMessages() {
			if err := writeLine(out, m.GetJson()); err != nil {
				return err
			}
		}
	}
}

func writeLine(w *bufio.Writer, line []byte) error {
	if _, err := w.Write(line); err != nil {
		return err
	}
	return w.WriteByte('\n')
}

func (c *client) explain(cmd *cobra.Command, next receive) error {
	var header *contextdv1.ContextHeader
	for {
		resp, err := next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if h := resp.GetHeader(); h != nil {
			header = h
		}
	}
	if header == nil {
		return fmt.Errorf("the daemon sent no header")
	}
	c.noteModel(cmd, header.GetBudget().GetUnknownModel())
	return writeExplanation(cmd, header)
}
