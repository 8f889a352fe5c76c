package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/contextd/contextd/client/read"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

func newAppend(c *client) *cobra.Command {
	atomic := false
	var expected uint64
	var format contextdv1.Format
	var model string
	cmd := &cobra.Command{
		Use:   "append SESSION",
		Short: "Append events, or messages of a provider's format, from stdin",
		Long: `Append events from stdin, one JSON object per line: contextd.v1.Event in
protobuf's JSON form, as "contextd log --json" writes it. seq and turn are
ignored. Half a surrogate pair, and bytes that are not UTF-8, become U+FFFD, but an
event_id with these is refused.

With --format they are messages as a provider's API has them: one after another, as
"contextd assemble --format" writes them, or a list of them. Signed reasoning goes back only
to the provider of the model that wrote it, which such messages do not name: --model does.

Each event is appended as it is read, so that another program may feed a pipe;
with --atomic all of them are one batch, whole or not at all. Messages are appended when
all of them are read.`,
		Example: `  contextd log old --json | contextd append new
  contextd assemble old --format anthropic | contextd append new --format anthropic --model claude-opus-4-5
  echo '{"message":{"role":"ROLE_USER","blocks":[{"text":{"text":"Hello"}}]}}' | contextd append my-session`,
		Args: cobra.ExactArgs(1),
	}
	var next nextEvent
	run := c.run(func(cmd *cobra.Command, api api, args []string) (err error) {
		sum := &appendSum{client: c, cmd: cmd}
		req := &contextdv1.AppendEventsRequest{SessionId: args[0]}
		if cmd.Flags().Changed("expected-head") {
			req.ExpectedHead = &expected
		}
		if atomic {
			err = appendAll(cmd, api, req, next, sum)
		} else {
			err = appendEach(cmd, api, req, next, sum)
		}
		if err == nil && sum.fresh+sum.duplicates == 0 {
			err = checkSession(cmd, api, args[0])
		}
		if err != nil && sum.fresh+sum.duplicates == 0 {
			return err
		}
		// Report what the daemon acknowledged even after an error: it is in the log.
		return errors.Join(err, sum.write())
	})
	cmd.Flags().Var(formatFlag{&format}, "format", "`format` of the input: contextd for events, or that of messages: "+strings.Join(formatNames()[1:], ", "))
	cmd.Flags().StringVar(&model, "model", "", "`name` of the model that wrote the messages, where they name none")
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if model != "" && format == contextdv1.Format_FORMAT_UNSPECIFIED {
			return usageError{errors.New("--model: goes with --format; an event names its model itself")}
		}
		if next, err = eventsOf(cmd, format, model); err == nil && c.embedded != "" {
			next, c.creates, err = ahead(next) // an empty input must not create a data directory
		}
		if err != nil {
			return err
		}
		return run(cmd, args)
	}
	cmd.Flags().BoolVar(&atomic, "atomic", false, "append all events as one batch")
	cmd.Flags().Uint64Var(&expected, "expected-head", 0, "append only if the newest `event` is this one; 0 for an empty session")
	return cmd
}

// checkSession returns an error if no session can have this id. Where there was no event to append, nothing else
// has checked it.
func checkSession(cmd *cobra.Command, api api, id string) error {
	_, err := api.GetSession(cmd.Context(), &contextdv1.GetSessionRequest{SessionId: id})
	if status.Code(err) == codes.NotFound {
		return nil
	}
	return err
}

func appendAll(cmd *cobra.Command, api api, req *contextdv1.AppendEventsRequest, next nextEvent, sum *appendSum) error {
	for {
		e, err := next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		req.Events = append(req.Events, e)
	}
	resp, err := api.AppendEvents(cmd.Context(), req)
	if err != nil {
		return err
	}
	return sum.add(resp)
}

// appendEach sends events and reads the acknowledgements at the same time.
func appendEach(cmd *cobra.Command, api api, first *contextdv1.AppendEventsRequest, next nextEvent, sum *appendSum) error {
	stream, err := api.AppendEventStream(cmd.Context())
	if err != nil {
		return err
	}
	sent := make(chan error, 1)
	go func() { sent <- sendEach(stream, first, next) }()
	for {
		resp, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return <-sent
		}
		if err != nil {
			// Answers come in the order of the input, one for each event.
			return &inputError{err, fmt.Sprintf("event %d of stdin", sum.fresh+sum.duplicates+1)}
		}
		if err := sum.add(resp.GetAppended()); err != nil {
			return err
		}
	}
}

// sendEach returns errors of the input only. Errors of the stream are reported by the goroutine that receives
// from it.
func sendEach(stream contextdv1.ContextService_AppendEventStreamClient, first *contextdv1.AppendEventsRequest, next nextEvent) error {
	expected := first.ExpectedHead
	for {
		e, err := next()
		if err != nil {
			if closeErr := stream.CloseSend(); errors.Is(err, io.EOF) {
				return closeErr
			}
			return err
		}
		req := &contextdv1.AppendEventsRequest{SessionId: first.GetSessionId(), Events: []*contextdv1.Event{e}, ExpectedHead: expected}
		if stream.Send(&contextdv1.AppendEventStreamRequest{Append: req}) != nil {
			return nil //nolint:nilerr // the receiver reports what is wrong with the stream
		}
		// Only the first append checks --expected-head; the others follow it.
		expected = nil
	}
}

// nextEvent returns the events of an input, one after another, and io.EOF after the last.
type nextEvent func() (*contextdv1.Event, error)

// ahead reads the first event, so that the caller knows whether there is some; all returns it again.
func ahead(next nextEvent) (all nextEvent, some bool, err error) {
	first, err := next()
	if errors.Is(err, io.EOF) {
		return next, false, nil
	}
	return func() (e *contextdv1.Event, err error) {
		if e, first = first, nil; e != nil {
			return e, nil
		}
		return next()
	}, true, err
}

// eventsOf reads events from stdin or, with a provider's format, messages that the model wrote.
func eventsOf(cmd *cobra.Command, format contextdv1.Format, model string) (nextEvent, error) {
	in := cmd.InOrStdin()
	if format == contextdv1.Format_FORMAT_UNSPECIFIED {
		return newEventReader(in).next, nil
	}
	data, err := io.ReadAll(in)
	if err != nil {
		return nil, err
	}
	events, err := read.Messages(format, data)
	if err == nil && len(events) == 0 && len(bytes.TrimSpace(data)) > 0 {
		err = fmt.Errorf("holds no message of the format %s", formatName(format))
	}
	if err != nil {
		return nil, usageError{fmt.Errorf("stdin: %w", err)}
	}
	if signed := nameModel(events, model); signed > 0 && model == "" && !isQuiet(cmd) {
		fmt.Fprintf(cmd.ErrOrStderr(), "note: %s with signed reasoning and no model: contexts leave the reasoning out; --model names it\n", counted(signed, "message"))
	}
	return func() (*contextdv1.Event, error) {
		if len(events) == 0 {
			return nil, io.EOF
		}
		e := events[0]
		events = events[1:]
		return e, nil
	}, nil
}

// nameModel sets the model of assistant messages that name none. It returns how many of them have signed
// reasoning and no other reasoning from which the provider could be recognised.
func nameModel(events []*contextdv1.Event, model string) (signed int) {
	for _, e := range events {
		m := e.GetMessage()
		if m.GetRole() != contextdv1.Role_ROLE_ASSISTANT || m.GetModel() != "" {
			continue
		}
		m.Model = model
		if hasThinking(m, func(t *contextdv1.Thinking) bool { return t.GetSignature() != "" }) &&
			!hasThinking(m, func(t *contextdv1.Thinking) bool {
				return len(t.GetRedactedData()) > 0 || t.GetEncryptedContent() != ""
			}) {
			signed++
		}
	}
	return signed
}

func hasThinking(m *contextdv1.Message, kind func(*contextdv1.Thinking) bool) bool {
	return slices.ContainsFunc(m.GetBlocks(), func(b *contextdv1.Block) bool { return kind(b.GetThinking()) })
}

// appendSum adds up what was appended.
type appendSum struct {
	client            *client
	cmd               *cobra.Command
	fresh, duplicates int
	first, last       uint64
}

func (s *appendSum) add(resp *contextdv1.AppendEventsResponse) error {
	for _, r := range resp.GetReceipts() {
		switch {
		case r.GetDuplicate():
			s.duplicates++
		case s.fresh == 0:
			s.first = r.GetSeq()
			fallthrough
		default:
			s.fresh++
			s.last = r.GetSeq()
		}
		if s.client.output.structured() {
			if err := s.client.output.write(s.cmd.OutOrStdout(), r); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *appendSum) write() error {
	if s.client.output.structured() {
		return nil
	}
	text := counted(s.fresh, "event") + " appended"
	if s.fresh > 0 {
		text += fmt.Sprintf(", %d to %d", s.first, s.last)
	}
	if s.duplicates > 0 {
		text += fmt.Sprintf("; %d were there already", s.duplicates)
	}
	_, err := fmt.Fprintln(notes(s.cmd), text)
	return err
}
