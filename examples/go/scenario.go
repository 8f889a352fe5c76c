package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// scenario is what examples/README.md says that it is.
type scenario struct {
	Session string `json:"session"`
	Steps   []step `json:"steps"`
}

type step struct {
	Append       []json.RawMessage `json:"append"`
	Assemble     json.RawMessage   `json:"assemble"`
	FirstPointer bool              `json:"resolve_first_pointer"`
	Error        *failure          `json:"error"`
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
)

// player runs the steps of a scenario.
type player struct {
	client  contextdv1.ContextServiceClient
	session string
	held    map[contextdv1.Format]*heldContext
	newest  *contextdv1.ContextHeader
}

// runScenario runs the steps of a file and writes one line for each.
func runScenario(ctx context.Context, client contextdv1.ContextServiceClient, path string, out io.Writer) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var s scenario
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	p := player{client: client, session: s.Session + "-go", held: map[contextdv1.Format]*heldContext{}}
	lines := json.NewEncoder(out)
	for i, st := range s.Steps {
		line, err := p.play(ctx, i, st)
		if err == nil {
			err = lines.Encode(line)
		}
		if err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
	}
	return nil
}

func (p *player) play(ctx context.Context, i int, s step) (line any, err error) {
	switch {
	case s.Append != nil:
		return p.append(ctx, i, s.Append)
	case s.Assemble != nil:
		return p.assemble(ctx, i, s.Assemble)
	case s.FirstPointer:
		return p.resolve(ctx, i)
	case s.Error != nil:
		return p.fail(ctx, i, s.Error)
	default:
		return nil, errors.New("nothing to do")
	}
}

func (p *player) append(ctx context.Context, i int, events []json.RawMessage) (any, error) {
	req := &contextdv1.AppendEventsRequest{SessionId: p.session}
	for _, data := range events {
		e := &contextdv1.Event{}
		if err := protojson.Unmarshal(data, e); err != nil {
			return nil, err
		}
		req.Events = append(req.Events, e)
	}
	resp, err := p.client.AppendEvents(ctx, req)
	if err != nil {
		return nil, err
	}
	line := appendedLine{Step: i}
	for _, r := range resp.GetReceipts() {
		if r.GetDuplicate() {
			line.Duplicates++
		} else {
			line.Appended++
		}
	}
	return line, nil
}

func (p *player) assemble(ctx context.Context, i int, request json.RawMessage) (any, error) {
	req := &contextdv1.AssembleContextRequest{}
	if err := protojson.Unmarshal(request, req); err != nil {
		return nil, err
	}
	req.SessionId = p.session
	held := p.held[req.GetFormat()]
	if held == nil {
		held = &heldContext{}
		p.held[req.GetFormat()] = held
	}
	sent, err := held.assemble(ctx, p.client, req)
	if err != nil {
		return nil, err
	}
	p.newest = held.header
	return assembledLine{
		Step: i, ContextHash: hashOf(held.messages), PrefixHash: held.header.GetPrefixHash(),
		Messages: len(held.messages), Sent: sent, Bytes: sizeOf(held.messages),
	}, nil
}

func (p *player) resolve(ctx context.Context, i int) (any, error) {
	pointers := p.newest.GetProjection().GetRedactionPointers()
	if len(pointers) == 0 {
		return nil, errors.New("the newest assembly has no pointer")
	}
	resp, err := p.client.ResolvePointer(ctx, &contextdv1.ResolvePointerRequest{SessionId: p.session, Pointer: pointers[0].GetPointer()})
	if err != nil {
		return nil, err
	}
	hash := bodyHash(resp.GetBlock().GetToolResult())
	if hash != pointers[0].GetContentHash() {
		return nil, fmt.Errorf("%s gives back a body of %s, not %s", pointers[0].GetPointer(), hash, pointers[0].GetContentHash())
	}
	return resolvedLine{Step: i, SHA256: hash}, nil
}

func (p *player) fail(ctx context.Context, i int, f *failure) (any, error) {
	var err error
	if f.Append != nil {
		req := &contextdv1.AppendEventsRequest{}
		if err := protojson.Unmarshal(f.Append, req); err != nil {
			return nil, err
		}
		req.SessionId = p.session
		_, err = p.client.AppendEvents(ctx, req)
	} else {
		req := &contextdv1.AssembleContextRequest{}
		if err := protojson.Unmarshal(f.Assemble, req); err != nil {
			return nil, err
		}
		req.SessionId = p.session
		// Nothing is held of what fails.
		_, err = (&heldContext{}).assemble(ctx, p.client, proto.CloneOf(req))
	}
	got := detailsOf(err)
	if got.code != f.Code || got.field != f.Field {
		return nil, fmt.Errorf("failed with %s in %q, not %s in %q: %w", got.code, got.field, f.Code, f.Field, err)
	}
	return failedLine{Step: i, Code: got.code, Field: got.field}, nil
}
