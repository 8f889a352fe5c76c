// Command go is the smallest agent loop over contextd: what happens goes into the
// log, and before each model call the context is assembled from it. It holds the
// messages it was sent, asks only for what is new, and checks the hash.
//
//	contextd serve --store memory &
//	go run ./examples/go -addr 127.0.0.1:7171
package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:7171", "the daemon, host:port or unix:///path")
	session := flag.String("session", "example", "the session's id")
	flag.Parse()
	if err := run(context.Background(), *addr, *session); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, addr, session string) error {
	conn, err := grpc.NewClient(addr,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		// An event, and so a message, may be larger than gRPC's default of 4 MiB.
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(math.MaxInt32)),
	)
	if err != nil {
		return err
	}
	defer conn.Close()
	a := agent{client: contextdv1.NewContextServiceClient(conn), session: session}
	question := said(contextdv1.Role_ROLE_USER, text("What is in this directory?"))
	if err := a.append(ctx, said(contextdv1.Role_ROLE_SYSTEM, text("You are an agent.")), question); err != nil {
		return err
	}
	for turn := range 3 {
		if err := a.assemble(ctx); err != nil {
			return err
		}
		reply, done := model(turn)
		if err := a.append(ctx, reply...); err != nil || done {
			return err
		}
	}
	return nil
}

// agent is a session and the part of its context that was sent already.
type agent struct {
	client   contextdv1.ContextServiceClient
	session  string
	messages [][]byte
	hash     string
}

func (a *agent) append(ctx context.Context, events ...*contextdv1.Event) error {
	_, err := a.client.AppendEvents(ctx, &contextdv1.AppendEventsRequest{SessionId: a.session, Events: events})
	return err
}

// assemble brings the messages up to date.
func (a *agent) assemble(ctx context.Context) error {
	stream, err := a.client.AssembleContext(ctx, &contextdv1.AssembleContextRequest{
		SessionId: a.session,
		Budget:    &contextdv1.Budget{MaxTokens: 32_000},
		Have:      &contextdv1.Have{MessageCount: uint32(len(a.messages)), PrefixHash: a.hash},
	})
	if err != nil {
		return err
	}
	var header *contextdv1.ContextHeader
	fresh := 0
	for {
		resp, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if h := resp.GetHeader(); h != nil {
			header = h
			// What is not skipped was rewritten, and comes again.
			a.messages = a.messages[:h.GetSkippedMessages()]
		}
		for _, m := range resp.GetChunk().GetMessages() {
			a.messages = append(a.messages, m.GetJson())
			fresh++
		}
	}
	h := sha256.New()
	for _, m := range a.messages {
		h.Write(m)
		h.Write([]byte("\n"))
	}
	a.hash = "sha256:" + hex.EncodeToString(h.Sum(nil))
	if a.hash != header.GetPrefixHash() {
		return fmt.Errorf("the messages hash to %s; the daemon says %s", a.hash, header.GetPrefixHash())
	}
	fmt.Printf("%d messages, %d of them new, %d tokens\n", len(a.messages), fresh, header.GetBudget().GetProjectedTokens())
	return nil
}

// model stands for a call of a model, and for the tools that it calls.
func model(turn int) (events []*contextdv1.Event, done bool) {
	if turn == 2 {
		return []*contextdv1.Event{said(contextdv1.Role_ROLE_ASSISTANT, text("There is a README."))}, true
	}
	id := fmt.Sprintf("call-%d", turn)
	return []*contextdv1.Event{
		said(contextdv1.Role_ROLE_ASSISTANT, &contextdv1.Block{Kind: &contextdv1.Block_ToolCall{ToolCall: &contextdv1.ToolCall{
			CallId: id, Name: "ls", ArgumentsJson: []byte(`{"path":"."}`),
		}}}),
		said(contextdv1.Role_ROLE_TOOL, &contextdv1.Block{Kind: &contextdv1.Block_ToolResult{ToolResult: &contextdv1.ToolResult{
			CallId: id, Content: []*contextdv1.Block{text("README.md\n")},
		}}}),
	}, false
}

func said(role contextdv1.Role, blocks ...*contextdv1.Block) *contextdv1.Event {
	return &contextdv1.Event{Kind: &contextdv1.Event_Message{Message: &contextdv1.Message{Role: role, Blocks: blocks}}}
}

func text(s string) *contextdv1.Block {
	return &contextdv1.Block{Kind: &contextdv1.Block_Text{Text: &contextdv1.Text{Text: s}}}
}
