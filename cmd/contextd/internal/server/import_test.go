package server_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/contextd/contextd/cmd/contextd/internal/server"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/memlog"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// transcript is a list of messages in OpenAI's form.
func transcript(question string) string {
	return fmt.Sprintf(`[
  {"role": "system", "content": "You are an agent."},
  {"role": "user", "content": %q},
  {"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "ls", "arguments": "{\"depth\": 1.0}"}}]},
  {"role": "tool", "tool_call_id": "c1", "content": "bin"},
  {"role": "assistant", "content": "There is bin."}
]`, question)
}

func importOf(id, data string) func(*testing.T, *api) error {
	return func(t *testing.T, a *api) error {
		_, err := a.importInto(t, id, data)
		return err
	}
}

// importInto sends the file in small pieces.
func (a *api) importInto(t *testing.T, id, data string) (*contextdv1.ImportTranscriptResponse, error) {
	t.Helper()
	return a.importAs(t, id, "openai", data)
}

func (a *api) importAs(t *testing.T, id, harness, data string) (*contextdv1.ImportTranscriptResponse, error) {
	t.Helper()
	stream, err := a.transcripts.ImportTranscript(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	part := &contextdv1.ImportTranscriptRequest{Part: &contextdv1.ImportTranscriptRequest_Header{Header: &contextdv1.ImportHeader{SessionId: id, Harness: harness}}}
	for {
		if err := stream.Send(part); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if data == "" {
			break
		}
		n := min(len(data), 1000)
		part = &contextdv1.ImportTranscriptRequest{Part: &contextdv1.ImportTranscriptRequest_Data{Data: []byte(data[:n])}}
		data = data[n:]
	}
	return stream.CloseAndRecv()
}

func TestImport(t *testing.T) {
	eachStore(t, func(t *testing.T, open func(t *testing.T) eventlog.Store) {
		a := serve(t, open(t), func(o *server.Options) { o.Limits.MaxBatchEvents = 2 })
		first, err := a.importInto(t, "s", transcript("What is there?"))
		if err != nil {
			t.Fatal(err)
		}
		if first.GetEvents() != 5 || first.GetSession().GetHeadSeq() != 5 || first.GetSession().GetTurns() != 2 {
			t.Errorf("imported %v", first)
		}
		again, err := a.importInto(t, "s", transcript("What is there?"))
		if err != nil {
			t.Fatal(err)
		}
		if again.GetEvents() != 0 || again.GetSession().GetHeadSeq() != 5 {
			t.Errorf("imported again: %v", again)
		}
		events := a.read(t, "s")
		if got := string(events[2].GetMessage().GetBlocks()[0].GetToolCall().GetArgumentsJson()); got != `{"depth": 1.0}` {
			t.Errorf("arguments became %s", got)
		}
	})
}

// TestImportDatabase: the daemon reads no database, whatever it is said to be.
func TestImportDatabase(t *testing.T) {
	data, err := os.ReadFile("../../../../internal/harness/cursor/testdata/state.vscdb")
	if err != nil {
		t.Fatal(err)
	}
	a := serve(t, memlog.New())
	for _, harness := range []string{"", "cursor"} {
		_, err := a.importAs(t, "s", harness, string(data))
		if st := status.Convert(err); st.Code() != codes.InvalidArgument || !strings.Contains(st.Message(), "contextd import") {
			t.Errorf("as %q: %v", harness, err)
		}
	}
}
