package client_test

import (
	"bytes"
	"context"
	"io"
	"net/http"

	"github.com/contextd/contextd/client"
	"github.com/contextd/contextd/client/read"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// An agent's loop without a provider's SDK: the provider gets the bytes that were checked, and
// the log the bytes that the model wrote.
func Example() {
	_ = func(ctx context.Context, ask func(body io.Reader) (*http.Response, error), run func(*contextdv1.ToolCall) string) error {
		c, err := client.New(client.Options{}) // at CONTEXTD_ADDR, or 127.0.0.1:7171
		if err != nil {
			return err
		}
		defer c.Close()
		// Events with an id are appended once, however often the program runs.
		prompt, question := client.System("You repair builds."), client.User("Why does make fail?")
		prompt.EventId, question.EventId = "system", "question-1"
		if _, err := c.Append(ctx, "my-session", prompt, question); err != nil {
			return err
		}
		for {
			assembled, err := c.Assemble(ctx, &contextdv1.AssembleContextRequest{
				SessionId: "my-session", Format: contextdv1.Format_FORMAT_ANTHROPIC, Brief: true,
				Budget: &contextdv1.Budget{Model: "claude-sonnet-4-5", OutputReserve: 8_000},
			})
			if err != nil {
				return err
			}
			body, err := assembled.Body(map[string]any{"model": "claude-sonnet-4-5", "max_tokens": 8_000})
			if err != nil {
				return err
			}
			answer, err := ask(bytes.NewReader(body))
			if err != nil {
				return err
			}
			data, err := io.ReadAll(answer.Body)
			answer.Body.Close()
			if err != nil {
				return err
			}
			said, err := read.Response(data)
			if err != nil {
				return err
			}
			counted, err := read.Usage(data)
			if err != nil {
				return err
			}
			if _, err := c.Append(ctx, "my-session", said); err != nil {
				return err
			}
			if _, err := c.Record(ctx, assembled, counted); err != nil {
				return err
			}
			var results []*contextdv1.Event
			for _, b := range said.GetMessage().GetBlocks() {
				if call := b.GetToolCall(); call != nil {
					results = append(results, client.Result(call.GetCallId(), run(call), false))
				}
			}
			if len(results) == 0 {
				return nil
			}
			if _, err := c.Append(ctx, "my-session", results...); err != nil {
				return err
			}
		}
	}
	// Output:
}
