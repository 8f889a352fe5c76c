package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

func newResolve(c *client) *cobra.Command {
	return &cobra.Command{
		Use:   "resolve SESSION POINTER",
		Short: "Print the raw body of a pointer in a context",
		Long: `Print the raw body of a pointer in a context, byte for byte. On a terminal, control
characters are shown as \u001b and the like, so that they do nothing to it.`,
		Example: `  contextd resolve my-session ctx:12.0
  contextd resolve my-session ctx:12.0 --json`,
		Args: cobra.ExactArgs(2),
		RunE: c.runReading(func(cmd *cobra.Command, api api, args []string) error {
			resp, err := api.ResolvePointer(cmd.Context(), &contextdv1.ResolvePointerRequest{SessionId: args[0], Pointer: args[1]})
			if err != nil {
				return err
			}
			if c.output.structured() {
				return c.output.write(cmd.OutOrStdout(), resp)
			}
			return writeBody(inertOn(cmd.OutOrStdout()), resp.GetBlock())
		}),
	}
}

// writeBody writes a block's content unchanged, so that binary content stays as it is.
func writeBody(w io.Writer, b *contextdv1.Block) error {
	var err error
	switch k := b.GetKind().(type) {
	case *contextdv1.Block_Text:
		_, err = io.WriteString(w, k.Text.GetText())
	case *contextdv1.Block_Thinking:
		_, err = io.WriteString(w, k.Thinking.GetText())
	case *contextdv1.Block_ToolCall:
		_, err = w.Write(k.ToolCall.GetArgumentsJson())
	case *contextdv1.Block_ToolResult:
		for _, part := range k.ToolResult.GetContent() {
			if err := writeBody(w, part); err != nil {
				return err
			}
		}
	case *contextdv1.Block_Media:
		if k.Media.GetUri() != "" {
			_, err = fmt.Fprintln(w, k.Media.GetUri())
		} else {
			_, err = w.Write(k.Media.GetData())
		}
	case *contextdv1.Block_Provider:
		_, err = w.Write(k.Provider.GetJson())
	}
	return err
}
