package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

func newTokens(c *client) *cobra.Command {
	req := &contextdv1.CountTokensRequest{}
	cmd := &cobra.Command{
		Use:   "tokens [TEXT...]",
		Short: "Count the tokens of a text, or of stdin",
		Example: `  contextd tokens "how many tokens is this?" --model gpt-4o
  contextd tokens --tokenizer cl100k_base < README.md`,
		RunE: c.runReading(func(cmd *cobra.Command, api api, args []string) error {
			req.Text = strings.Join(args, " ")
			if len(args) == 0 {
				in, err := io.ReadAll(cmd.InOrStdin())
				if err != nil {
					return err
				}
				req.Text = string(in)
			}
			if req.GetTokenizer() == "" {
				c.noteFamily(cmd, req.GetModel())
			}
			resp, err := api.CountTokens(cmd.Context(), req)
			if err != nil {
				return err
			}
			c.noteModel(cmd, resp.GetUnknownModel())
			if c.output.structured() {
				return c.output.write(cmd.OutOrStdout(), resp)
			}
			how := "exactly"
			if !resp.GetExact() {
				how = "as an estimate"
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s, counted %s by %s\n", counted(resp.GetTokens(), "token"), how, resp.GetTokenizer())
			return err
		}),
	}
	cmd.Flags().StringVar(&req.Tokenizer, "tokenizer", "", "`name` of the tokenizer: o200k_base, cl100k_base or heuristic")
	cmd.Flags().StringVar(&req.Model, "model", "", "`name` of the model, which picks the tokenizer")
	return cmd
}
