package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// TestFaultDiskFullCalls makes every kind of call that stores something while the disk is full. Each is refused by name,
// and done once there is room.
func TestFaultDiskFullCalls(t *testing.T) {
	binary := build(t)
	for _, name := range []string{"plain", "encrypted"} {
		t.Run(name, func(t *testing.T) {
			dir := ownDisk(t, "96m")
			cmd := exec.Command(binary, "serve", "--data-dir="+filepath.Join(dir, "data"))
			if name == "encrypted" {
				key := filepath.Join(t.TempDir(), "store.key")
				if out, err := exec.Command(binary, "keygen", key).CombinedOutput(); err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				cmd.Args = append(cmd.Args, "--encryption-key-file="+key)
			}
			ballast := filepath.Join(dir, "ballast")
			if err := os.WriteFile(ballast, make([]byte, 40<<20), 0o600); err != nil {
				t.Fatal(err)
			}
			p := spawn(t, cmd)
			client, compactions := contextdv1.NewContextServiceClient(p.conn), contextdv1.NewCompactionServiceClient(p.conn)
			drain := func(session string, preview bool) error {
				stream, err := client.AssembleContext(t.Context(), &contextdv1.AssembleContextRequest{SessionId: session, Preview: preview})
				for err == nil {
					_, err = stream.Recv()
				}
				if errors.Is(err, io.EOF) {
					return nil
				}
				return err
			}
			say := func(ctx context.Context, session string, n int) error {
				for i := range n {
					role := []contextdv1.Role{contextdv1.Role_ROLE_USER, contextdv1.Role_ROLE_ASSISTANT}[i%2]
					_, err := client.AppendEvents(ctx, &contextdv1.AppendEventsRequest{SessionId: session, Events: []*contextdv1.Event{{
						Kind: &contextdv1.Event_Message{Message: &contextdv1.Message{Role: role, Blocks: []*contextdv1.Block{{Kind: &contextdv1.Block_Text{Text: &contextdv1.Text{Text: "hello"}}}}}},
					}}})
					if err != nil {
						return err
					}
				}
				return nil
			}
			compact := func(session, strategy, summary string) error {
				_, err := compactions.CompactSession(t.Context(), &contextdv1.CompactSessionRequest{SessionId: session, Strategy: strategy, Summary: summary, KeepLastTurns: 1})
				return err
			}
			for _, session := range []string{"summarize", "summary", "undo", "forked", "deleted"} {
				if err := errors.Join(say(t.Context(), session, 8), drain(session, false)); err != nil {
					t.Fatal(err)
				}
			}
			if err := compact("undo", "summarize", "what was said"); err != nil {
				t.Fatal(err)
			}
			var refused error
			for n := 0; refused == nil; n++ {
				refused = appendNoise(t.Context(), client, "noise", n)
			}
			expectDiskFull(t, refused)
			calls := map[string]func() error{
				"append": func() error { return say(t.Context(), "forked", 1) },
				"create": func() error {
					_, err := client.CreateSession(t.Context(), &contextdv1.CreateSessionRequest{SessionId: "created"})
					return err
				},
				"fork": func() error {
					_, err := client.ForkSession(t.Context(), &contextdv1.ForkSessionRequest{SessionId: "forked", NewSessionId: "fork"})
					return err
				},
				"assemble":  func() error { return drain("forked", false) },
				"summarize": func() error { return compact("summarize", "summarize", "") },
				"summary":   func() error { return compact("summary", "summarize", "what was said") },
				"undo": func() error {
					_, err := compactions.UndoCompaction(t.Context(), &contextdv1.UndoCompactionRequest{SessionId: "undo"})
					return err
				},
				"model call": func() error {
					_, err := client.RecordModelCall(t.Context(), &contextdv1.RecordModelCallRequest{SessionId: "forked", InputTokens: 5})
					return err
				},
				"import": func() error {
					stream, err := contextdv1.NewTranscriptServiceClient(p.conn).ImportTranscript(t.Context())
					if err != nil {
						return err
					}
					const line = `{"type":"user","uuid":"1","parentUuid":null,"sessionId":"x","timestamp":"2026-01-01T00:00:00Z","message":{"role":"user","content":"hello"}}` + "\n"
					_ = stream.Send(&contextdv1.ImportTranscriptRequest{Part: &contextdv1.ImportTranscriptRequest_Header{Header: &contextdv1.ImportHeader{SessionId: "imported", Harness: "claude"}}})
					_ = stream.Send(&contextdv1.ImportTranscriptRequest{Part: &contextdv1.ImportTranscriptRequest_Data{Data: []byte(line)}}) // the answer says what failed
					_, err = stream.CloseAndRecv()
					return err
				},
			}
			for name, call := range calls {
				err := call()
				t.Logf("%s: %v", name, err)
				if status.Code(err) == codes.ResourceExhausted {
					expectDiskFull(t, err)
				} else {
					t.Errorf("%s on a full disk: %v", name, err)
				}
			}
			if err := drain("forked", true); err != nil {
				t.Errorf("a preview on a full disk: %v", err)
			}
			if _, err := client.DeleteSession(t.Context(), &contextdv1.DeleteSessionRequest{SessionId: "deleted"}); err != nil {
				t.Errorf("delete on a full disk: %v", err)
			}
			if err := os.Remove(ballast); err != nil {
				t.Fatal(err)
			}
			within := time.Now().Add(time.Minute)
			for name, call := range calls {
				err := call()
				for status.Code(err) == codes.ResourceExhausted && time.Now().Before(within) {
					err = call()
				}
				if err != nil {
					t.Errorf("%s with room: %v", name, err)
				}
			}
			if t.Failed() {
				t.Log(p.log.String())
			}
		})
	}
}

// TestSecretsOnAFullDisk: a command that found no room for a key or a token can be repeated.
func TestSecretsOnAFullDisk(t *testing.T) {
	binary, dir := build(t), ownDisk(t, "64k")
	for _, args := range [][]string{{"keygen", filepath.Join(dir, "key")}, {"token", "--name=ci", "--out=" + filepath.Join(dir, "token")}} {
		ballast := filepath.Join(dir, "ballast")
		if err := os.WriteFile(ballast, make([]byte, 1<<20), 0o600); err == nil {
			t.Fatal("the disk is not full")
		}
		if out, err := exec.Command(binary, args...).CombinedOutput(); err == nil || !strings.Contains(string(out), "no space") {
			t.Errorf("%s on a full disk: %v\n%s", args[0], err, out)
		}
		if err := os.Remove(ballast); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(binary, args...).CombinedOutput(); err != nil {
			t.Errorf("%s with room: %v\n%s", args[0], err, out)
		}
	}
}
