package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"

	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/evaluate"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/render"
)

// sent is the context that a library would have sent before one model call.
type sent struct {
	Session string  `json:"session"`
	Peer    string  `json:"peer"`
	Step    int     `json:"step"`
	Seconds float64 `json:"seconds"`
	Items   []item  `json:"items"`
}

// item is a message of a context; the package's comment explains the fields.
type item struct {
	I     *int      `json:"i"`
	Text  *string   `json:"text"`
	Calls *[]string `json:"calls"`
	Role  string    `json:"role"`
	Of    []string  `json:"of"`
}

// readContexts calls take for each line of a file.
func readContexts(path string, take func(sent) error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewReader(f)
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF && len(line) == 0 {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		var s sent
		if err := json.Unmarshal(line, &s); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if err := take(s); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
}

// context returns a context as a prompt, with the calls that it shows.
func (s *session) context(c sent) (evaluate.Prompt, error) {
	var messages []render.Message
	visible := 0
	for _, it := range c.Items {
		m := message{Role: it.Role}
		var from []eventlog.Place // for a message that is unchanged from the log
		if it.I != nil {
			if *it.I < 0 || *it.I >= c.Step {
				return evaluate.Prompt{}, fmt.Errorf("%s shows message %d at step %d", c.Peer, *it.I, c.Step)
			}
			m = s.Messages[*it.I]
			if it.Text == nil && it.Calls == nil {
				from = []eventlog.Place{{Seq: eventlog.Seq(*it.I) + 1}}
			}
		}
		if it.Text != nil {
			m.Text = *it.Text
		}
		if it.Calls != nil {
			m.Calls = slices.DeleteFunc(slices.Clone(m.Calls), func(c call) bool { return !slices.Contains(*it.Calls, c.ID) })
		}
		visible += len(m.Calls)
		for _, of := range it.Of {
			if i, err := strconv.Atoi(of); err == nil && i < len(s.Messages) {
				visible += len(s.Messages[i].Calls)
			}
		}
		body := m.event("").Body.(*eventlog.Message)
		shown := render.Message{Role: body.Role, Blocks: body.Blocks, Places: from, Origin: render.Verbatim}
		if from != nil {
			shown.Tokens = s.tokens[*it.I]
		} else {
			shown.Tokens = budget.MessageOverhead
			for _, b := range body.Blocks {
				shown.Tokens += s.log.Gauge().Block(b)
			}
		}
		messages = append(messages, shown)
	}
	p := s.log.Prompt(messages)
	p.Visible = visible
	return p, nil
}

// orphaned reports whether a prompt has a result without a call before it, or lacks the result of a call that
// has one in the log. Providers refuse both.
func orphaned(prompt []byte, answered func(callID string) bool) (bool, error) {
	open := map[string]bool{} // by call id: whether its result is still missing
	for line := range bytes.Lines(prompt) {
		var m struct {
			Blocks []struct {
				Call *struct {
					ID string `json:"call_id"`
				} `json:"tool_call"`
				Result *struct {
					ID string `json:"call_id"`
				} `json:"tool_result"`
			} `json:"blocks"`
		}
		if err := json.Unmarshal(line, &m); err != nil {
			return false, err
		}
		for _, b := range m.Blocks {
			if b.Call != nil {
				open[b.Call.ID] = true
			}
			if b.Result != nil {
				if !open[b.Result.ID] {
					return true, nil
				}
				open[b.Result.ID] = false
			}
		}
	}
	for id, waits := range open {
		if waits && answered(id) {
			return true, nil
		}
	}
	return false, nil
}

// answered reports whether a call has a result within the first n messages.
func (s *session) answered(n int) func(string) bool {
	all := map[string]bool{}
	for _, m := range s.Messages[:n] {
		if m.Role == "tool" {
			all[m.CallID] = true
		}
	}
	return func(id string) bool { return all[id] }
}

// checked counts the contexts of a policy that a provider would refuse.
type checked struct {
	evaluate.Policy
	row *row
	err error
}

func (c *checked) Render(l *evaluate.Log) evaluate.Prompt {
	p := c.Policy.Render(l)
	// contextd shows a call without a result as interrupted, so every call has a result.
	bad, err := orphaned(p.JSON, func(string) bool { return true })
	if bad {
		c.row.orphaned++
	}
	c.err = errors.Join(c.err, err)
	return p
}
