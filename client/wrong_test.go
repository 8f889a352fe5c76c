package client_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/contextd/contextd/client"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// TestTextsThatAreNotUTF8AreNamed: gRPC would only say that some string is wrong.
func TestTextsThatAreNotUTF8AreNamed(t *testing.T) {
	c := inMemory(t)
	for field, call := range map[string]func() error{
		"session_id": func() error {
			_, err := c.Append(t.Context(), "a\xff", client.User("Hello."))
			return err
		},
		"events[1].message.blocks[0].tool_call.call_id": func() error {
			_, err := c.Append(t.Context(), "s", client.User("Hello."), client.Assistant("", client.Call("\xff", "read", nil)))
			return err
		},
		"budget.model": func() error {
			_, err := c.Assemble(t.Context(), &contextdv1.AssembleContextRequest{SessionId: "s", Budget: &contextdv1.Budget{Model: "\xff"}})
			return err
		},
		"header.harness": func() error {
			_, err := c.Import(t.Context(), &contextdv1.ImportHeader{SessionId: "s", Harness: "\xff"}, strings.NewReader(""))
			return err
		},
	} {
		var refused *client.Error
		if err := call(); !errors.As(err, &refused) || !errors.Is(err, client.ErrInvalid) || refused.Field() != field || refused.Reason != "INVALID_FIELD" {
			t.Errorf("%s: %v", field, err)
		}
	}
}

type idle struct{}

func (idle) Read([]byte) (int, error) { return 0, nil }

func TestWrongReadersAndWritersAreRefused(t *testing.T) {
	c := inMemory(t)
	header := &contextdv1.ImportHeader{SessionId: "s", Harness: "claude-code"}
	if _, err := c.Import(t.Context(), header, idle{}); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("a reader that has nothing, and no end: %v", err)
	}
	if _, err := c.Import(t.Context(), header, (*os.File)(nil)); err == nil || !strings.Contains(err.Error(), "must not be nil") {
		t.Errorf("a nil file: %v", err)
	}
	if _, err := c.Export(t.Context(), &contextdv1.ExportTranscriptRequest{SessionId: "s", Harness: "claude-code"}, (*bytes.Buffer)(nil)); err == nil || !strings.Contains(err.Error(), "must not be nil") {
		t.Errorf("a nil buffer: %v", err)
	}
}

func TestToolsAsBytes(t *testing.T) {
	c := inMemory(t)
	schemas := []map[string]any{{"name": "read", "input_schema": map[string]any{"type": "object"}}}
	listed, err := c.WithTools(t.Context(), &contextdv1.Budget{MaxTokens: 1000}, 0, schemas)
	if err != nil {
		t.Fatal(err)
	}
	written, err := c.WithTools(t.Context(), &contextdv1.Budget{MaxTokens: 1000}, 0, []byte(`[{"input_schema":{"type":"object"},"name":"read"}]`))
	if err != nil {
		t.Fatal(err)
	}
	if listed.GetOverheadTokens() == 0 || written.GetOverheadTokens() != listed.GetOverheadTokens() {
		t.Errorf("%d tokens as bytes, %d as a list", written.GetOverheadTokens(), listed.GetOverheadTokens())
	}
	most, err := c.WithTools(t.Context(), &contextdv1.Budget{OverheadTokens: math.MaxUint64}, 0, schemas)
	if err != nil || most.GetOverheadTokens() != math.MaxUint64 {
		t.Errorf("the sum is %d: %v", most.GetOverheadTokens(), err)
	}
}

func TestContextsThatEndAreNamed(t *testing.T) {
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := inMemory(t).Append(canceled, "s", client.User("Hello.")); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that ended before the call: %v", err)
	}
	nobody, err := client.New(client.Options{Address: "unix://" + t.TempDir() + "/none"})
	if err != nil {
		t.Fatal(err)
	}
	defer nobody.Close()
	// It ends while the client waits for a daemon.
	late, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	if _, err := nobody.Append(late, "s", client.User("Hello.")); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, client.ErrUnavailable) {
		t.Errorf("a deadline without a daemon: %v", err)
	}
}
