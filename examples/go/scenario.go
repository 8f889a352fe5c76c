package main

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/contextd/contextd/client"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// scenario is a scenario as examples/README.md defines it.
type scenario struct {
	Session string `json:"session"`
	Steps   []step `json:"steps"`
}

type step struct {
	Append       []json.RawMessage `json:"append"`
	Assemble     json.RawMessage   `json:"assemble"`
	FirstPointer bool              `json:"resolve_first_pointer"`
	Error        *failure          `json:"error"`
	Daemon       string            `json:"daemon"`
	Lost         []json.RawMessage `json:"lost"`
}

type failure struct {
	Append   json.RawMessage `json:"append"`
	Assemble json.RawMessage `json:"assemble"`
	Code     string          `json:"code"`
	Field    string          `json:"field"`
}

// The lines of the report.
type (
	appendedLine struct {
		Step       int `json:"step"`
		Appended   int `json:"appended"`
		Duplicates int `json:"duplicates"`
	}
	assembledLine struct {
		Step        int    `json:"step"`
		ContextHash string `json:"context_hash"`
		PrefixHash  string `json:"prefix_hash"`
		Messages    int    `json:"messages"`
		Sent        int    `json:"sent"`
		Bytes       int    `json:"bytes"`
	}
	resolvedLine struct {
		Step   int    `json:"step"`
		SHA256 string `json:"resolved_sha256"`
	}
	failedLine struct {
		Step  int    `json:"step"`
		Code  string `json:"code"`
		Field string `json:"field"`
	}
	daemonLine struct {
		Step   int    `json:"step"`
		Daemon string `json:"daemon"`
	}
	lostLine struct {
		Step       int    `json:"step"`
		Reason     string `json:"reason"`
		Field      string `json:"field"`
		Appended   int    `json:"appended"`
		Duplicates int    `json:"duplicates"`
	}
)

// player runs the steps of a scenario.
type player struct {
	client   *client.Client
	session  string
	lines    *json.Encoder
	runner   *bufio.Scanner // the answers of the program that runs the scenario
	newest   *client.Context
	appended []*contextdv1.Event // all events, to append them again after a lost log
}

// runScenario runs the steps of a file and writes one line for each to out.
func runScenario(ctx context.Context, c *client.Client, path string, in io.Reader, out io.Writer) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var s scenario
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	p := player{client: c, session: s.Session + "-go", lines: json.NewEncoder(out), runner: bufio.NewScanner(in)}
	for i, st := range s.Steps {
		if err := p.play(ctx, i, st); err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
	}
	return nil
}

func (p *player) play(ctx context.Context, i int, s step) error {
	switch {
	case s.Append != nil:
		return p.append(ctx, i, s.Append)
	case s.Assemble != nil:
		return p.assemble(ctx, i, s.Assemble)
	case s.FirstPointer:
		return p.resolve(ctx, i)
	case s.Error != nil:
		return p.fail(ctx, i, s.Error)
	case s.Daemon != "":
		return p.wait(i, s.Daemon)
	case s.Lost != nil:
		return p.lose(ctx, i, s.Lost)
	default:
		return errors.New("nothing to do")
	}
}

func (p *player) append(ctx context.Context, i int, raw []json.RawMessage) error {
	events, err := eventsOf(raw)
	if err != nil {
		return err
	}
	appended, duplicates, err := p.send(ctx, events)
	if err != nil {
		return err
	}
	p.appended = append(p.appended, events...)
	return p.lines.Encode(appendedLine{Step: i, Appended: appended, Duplicates: duplicates})
}

func (p *player) send(ctx context.Context, events []*contextdv1.Event) (appended, duplicates int, err error) {
	resp, err := p.client.Append(ctx, p.session, events...)
	for _, r := range resp.GetReceipts() {
		if r.GetDuplicate() {
			duplicates++
		}
	}
	return len(resp.GetReceipts()) - duplicates, duplicates, err
}

func (p *player) assemble(ctx context.Context, i int, request json.RawMessage) error {
	made, err := p.assembled(ctx, request)
	if err != nil {
		return err
	}
	p.newest = made
	line := assembledLine{
		Step: i, PrefixHash: made.Header.GetPrefixHash(), Messages: len(made.Messages), Sent: made.Sent,
	}
	hash := sha256.New()
	for _, m := range made.Messages {
		hash.Write(m.GetJson())
		hash.Write([]byte("\n"))
		line.Bytes += len(m.GetJson()) + 1
	}
	line.ContextHash = sum(hash.Sum(nil))
	return p.lines.Encode(line)
}

func (p *player) assembled(ctx context.Context, request json.RawMessage) (*client.Context, error) {
	req := &contextdv1.AssembleContextRequest{}
	if err := protojson.Unmarshal(request, req); err != nil {
		return nil, err
	}
	req.SessionId = p.session
	return p.client.Assemble(ctx, req)
}

func (p *player) resolve(ctx context.Context, i int) error {
	pointers := p.newest.Header.GetProjection().GetRedactionPointers()
	if len(pointers) == 0 {
		return errors.New("the newest assembly has no pointer")
	}
	if err := recall(ctx, p.client, p.session, pointers[0]); err != nil {
		return err
	}
	return p.lines.Encode(resolvedLine{Step: i, SHA256: pointers[0].GetContentHash()})
}

func (p *player) fail(ctx context.Context, i int, f *failure) error {
	var err error
	if f.Append != nil {
		req := &contextdv1.AppendEventsRequest{}
		if err := protojson.Unmarshal(f.Append, req); err != nil {
			return err
		}
		req.SessionId = p.session
		_, err = p.client.AppendEvents(ctx, req)
	} else {
		_, err = p.assembled(ctx, f.Assemble)
	}
	var got *client.Error
	if !errors.As(err, &got) {
		return fmt.Errorf("%s was to come: %w", f.Code, err)
	}
	if name := code.Code(got.Code).String(); name != f.Code || got.Field() != f.Field {
		return fmt.Errorf("not %s in %q, but %s in %q: %w", f.Code, f.Field, name, got.Field(), err)
	}
	return p.lines.Encode(failedLine{Step: i, Code: f.Code, Field: f.Field})
}

// wait asks the program that runs the scenario to do something to the daemon, and waits until it has.
func (p *player) wait(i int, what string) error {
	if err := p.lines.Encode(daemonLine{Step: i, Daemon: what}); err != nil {
		return err
	}
	if !p.runner.Scan() {
		return fmt.Errorf("nobody answers: %w", cmp.Or(p.runner.Err(), io.EOF))
	}
	return nil
}

// lose appends to a log that lost events, and then appends the whole conversation again.
func (p *player) lose(ctx context.Context, i int, raw []json.RawMessage) error {
	events, err := eventsOf(raw)
	if err != nil {
		return err
	}
	_, _, err = p.send(ctx, events)
	var lost *client.Error
	if !errors.Is(err, client.ErrLogLost) || !errors.As(err, &lost) {
		return fmt.Errorf("the loss of the log was to be noticed: %w", err)
	}
	p.client.Forget(p.session)
	p.appended = append(p.appended, events...)
	appended, duplicates, err := p.send(ctx, p.appended)
	if err != nil {
		return err
	}
	return p.lines.Encode(lostLine{
		Step: i, Reason: lost.Reason, Field: lost.Field(), Appended: appended, Duplicates: duplicates,
	})
}

func eventsOf(raw []json.RawMessage) ([]*contextdv1.Event, error) {
	events := make([]*contextdv1.Event, len(raw))
	for i, data := range raw {
		events[i] = &contextdv1.Event{}
		if err := protojson.Unmarshal(data, events[i]); err != nil {
			return nil, err
		}
	}
	return events, nil
}

// recall resolves a pointer, and compares the body with the pointer's hash.
func recall(ctx context.Context, c *client.Client, session string, p *contextdv1.RedactionPointer) error {
	body, err := c.Recall(ctx, session, p.GetPointer())
	if err != nil {
		return err
	}
	hash := sha256.Sum256([]byte(body))
	if got := sum(hash[:]); got != p.GetContentHash() {
		return fmt.Errorf("%s gives back a body of %s, not %s", p.GetPointer(), got, p.GetContentHash())
	}
	return nil
}

// sum is a hash in the API's form.
func sum(hash []byte) string { return "sha256:" + hex.EncodeToString(hash) }
