package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/contextd/contextd/client"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// timeDaemon times the turns of long sessions with a daemon and its Go client over a unix socket: appending
// the turn's messages, and assembling the context.
func timeDaemon(ctx context.Context, o options, sessions []*session, r *row) (err error) {
	socket := filepath.Join(o.dir, "contextd.sock")
	cmd := exec.CommandContext(ctx, o.program, "serve", "--store", "memory", "--listen", "", "--unix-socket", socket, "--log-level", "error")
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, cmd.Process.Signal(os.Interrupt), cmd.Wait())
	}()
	c, err := client.New(client.Options{Address: "unix://" + socket})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	for _, s := range sessions {
		if s.timed == 0 {
			continue
		}
		if err := timeSession(ctx, c, s, r); err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
	}
	return nil
}

func timeSession(ctx context.Context, c *client.Client, s *session, r *row) error {
	request := &contextdv1.AssembleContextRequest{
		SessionId: s.Name, Brief: true, Budget: &contextdv1.Budget{MaxTokens: window, Tokenizer: "o200k_base"},
	}
	done := 0
	for n, step := range s.Steps {
		const batch = 500 // events per append
		for ; step-done > batch; done += batch {
			if err := push(ctx, c, s, done, done+batch); err != nil {
				return err
			}
		}
		begun := time.Now()
		if err := push(ctx, c, s, done, step); err != nil {
			return err
		}
		if _, err := c.Assemble(ctx, request); err != nil {
			return err
		}
		if done = step; n > 0 {
			r.seconds[s.timed] = append(r.seconds[s.timed], time.Since(begun).Seconds())
		}
	}
	return nil
}

// push appends the messages [from, to).
func push(ctx context.Context, c *client.Client, s *session, from, to int) error {
	events := make([]*contextdv1.Event, 0, to-from)
	for _, m := range s.Messages[from:to] {
		switch m.Role {
		case "system":
			events = append(events, client.System(m.Text))
		case "user":
			events = append(events, client.User(m.Text))
		case "tool":
			events = append(events, client.Result(m.CallID, m.Text, m.Failed))
		default:
			blocks := []*contextdv1.Block{client.Text(m.Text)}
			for _, c := range m.Calls {
				blocks = append(blocks, client.Call(c.ID, c.Tool, c.Arguments))
			}
			events = append(events, client.Assistant("", blocks...))
		}
	}
	_, err := c.Append(ctx, s.Name, events...)
	return err
}
