package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/timestamppb"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// The session's clock starts at epoch. Each event advances it by a fixed time.
var epoch = time.Date(2026, time.January, 5, 9, 0, 0, 0, time.UTC)

const (
	thinkTime = 9 * time.Second // an assistant message
	toolTime  = 2 * time.Second // a result
	userTime  = 2 * time.Minute // between an answer and the next question
)

// recorder writes events as they happen.
type recorder struct {
	place    *place
	out      io.Writer
	progress io.Writer
	now      time.Time
	events   int
	calls    int
}

// record plays a script in a place and writes the session.
func record(ctx context.Context, s script, p *place, out, progress io.Writer) error {
	r := &recorder{place: p, out: out, progress: progress, now: epoch}
	for _, command := range s.Prepare {
		if text, err := p.command(ctx, command).CombinedOutput(); err != nil {
			return fmt.Errorf("prepare: %s: %w: %s", command, err, text)
		}
	}
	if err := r.say(contextdv1.Role_ROLE_SYSTEM, text(s.System)); err != nil {
		return err
	}
	for i, t := range s.Turns {
		if i > 0 {
			r.now = r.now.Add(cmp.Or(t.After, userTime))
		}
		if err := r.say(contextdv1.Role_ROLE_USER, text(t.User)); err != nil {
			return err
		}
		for j := range t.Steps {
			if err := r.step(ctx, &t.Steps[j]); err != nil {
				return fmt.Errorf("turns[%d].steps[%d]: %w", i, j, err)
			}
		}
	}
	fmt.Fprintf(progress, "%d events, %d calls\n", r.events, r.calls)
	return nil
}

// step writes one assistant message and the results of its calls.
func (r *recorder) step(ctx context.Context, s *step) error {
	var blocks []*contextdv1.Block
	if s.Say != "" {
		blocks = append(blocks, text(s.Say))
	}
	first := r.calls + 1
	for i := range s.Calls {
		name, tool := s.Calls[i].tool()
		arguments, err := encodeArguments(tool)
		if err != nil {
			return err
		}
		r.calls++
		blocks = append(blocks, &contextdv1.Block{Kind: &contextdv1.Block_ToolCall{ToolCall: &contextdv1.ToolCall{
			CallId: callID(r.calls), Name: name, ArgumentsJson: arguments,
		}}})
	}
	r.now = r.now.Add(thinkTime)
	if err := r.say(contextdv1.Role_ROLE_ASSISTANT, blocks...); err != nil {
		return err
	}
	for i := range s.Calls {
		if err := r.call(ctx, callID(first+i), &s.Calls[i]); err != nil {
			return err
		}
	}
	return nil
}

// call runs a call and writes its result.
func (r *recorder) call(ctx context.Context, id string, c *call) error {
	name, tool := c.tool()
	output, failed, err := tool.run(ctx, r.place)
	if err != nil {
		return err
	}
	output = r.place.clean(output)
	if failed != c.Fails {
		return fmt.Errorf("%s %s: failed is %t and the script says %t; it answered:\n%s", id, name, failed, c.Fails, output)
	}
	fmt.Fprintf(r.progress, "%s %-10s %6d bytes  failed %t\n", id, name, len(output), failed)
	r.now = r.now.Add(toolTime)
	return r.say(contextdv1.Role_ROLE_TOOL, &contextdv1.Block{Kind: &contextdv1.Block_ToolResult{ToolResult: &contextdv1.ToolResult{
		CallId: id, ToolName: name, IsError: failed,
		Content: []*contextdv1.Block{text(output)},
	}}})
}

// say writes one message.
func (r *recorder) say(role contextdv1.Role, blocks ...*contextdv1.Block) error {
	r.events++
	loose, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(&contextdv1.Event{
		EventId: fmt.Sprintf("event_%03d", r.events),
		Time:    timestamppb.New(r.now),
		Kind:    &contextdv1.Event_Message{Message: &contextdv1.Message{Role: role, Blocks: blocks}},
	})
	if err != nil {
		return err
	}
	// protojson varies its whitespace between builds.
	var line bytes.Buffer
	if err := json.Compact(&line, loose); err != nil {
		return err
	}
	line.WriteByte('\n')
	_, err = r.out.Write(line.Bytes())
	return err
}

func text(s string) *contextdv1.Block {
	return &contextdv1.Block{Kind: &contextdv1.Block_Text{Text: &contextdv1.Text{Text: strings.TrimSuffix(s, "\n")}}}
}

func callID(n int) string { return fmt.Sprintf("call_%03d", n) }

func encodeArguments(t tool) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(t); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(out.Bytes()), nil
}
