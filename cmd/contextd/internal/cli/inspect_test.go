package cli

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"connectrpc.com/connect"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// inspecting runs contextd inspect until the test ends. It returns the page's address and its token.
func inspecting(t *testing.T, args ...string) (address, token string) {
	t.Helper()
	out, in := io.Pipe()
	program := Program{
		Build: Build{Version: "test"}, Stdin: strings.NewReader(""), Stdout: in, Stderr: t.Output(),
		LookupEnv: func(string) (string, bool) { return "", false },
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() {
		ended <- program.Run(ctx, append([]string{"inspect"}, args...))
		in.Close()
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	t.Cleanup(func() {
		stop()
		out.Close()
		if code := <-ended; code != 0 {
			t.Errorf("exit code %d", code)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	address, token, ok := strings.Cut(strings.TrimSpace(line), "/#token=")
	if !ok {
		t.Fatalf("the first line is %q", line)
	}
	return address, token
}

func ask[Q, A any](t *testing.T, address, token, method string, req *Q) (*A, error) {
	t.Helper()
	r := connect.NewRequest(req)
	r.Header().Set("Authorization", "Bearer "+token)
	answer, err := connect.NewClient[Q, A](http.DefaultClient, address+method).CallUnary(t.Context(), r)
	if err != nil {
		return nil, err
	}
	return answer.Msg, nil
}

// TestInspectTranscripts: each model call of a transcript gets a context, for the model that the transcript
// names.
func TestInspectTranscripts(t *testing.T) {
	const talk = `{"type":"user","uuid":"00000000-0000-4000-8000-000000000001","parentUuid":null,"isSidechain":false,"sessionId":"00000000-0000-4000-8000-0000000000aa","timestamp":"2026-01-05T09:00:00Z","version":"1.0.0","cwd":"/repo","message":{"role":"user","content":"Why does make fail?"}}
{"type":"assistant","uuid":"00000000-0000-4000-8000-000000000002","parentUuid":"00000000-0000-4000-8000-000000000001","isSidechain":false,"sessionId":"00000000-0000-4000-8000-0000000000aa","timestamp":"2026-01-05T09:00:01Z","version":"1.0.0","cwd":"/repo","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[{"type":"tool_use","id":"toolu_1","name":"Bash","input":{"command":"make"}}]}}
{"type":"user","uuid":"00000000-0000-4000-8000-000000000003","parentUuid":"00000000-0000-4000-8000-000000000002","isSidechain":false,"sessionId":"00000000-0000-4000-8000-0000000000aa","timestamp":"2026-01-05T09:00:02Z","version":"1.0.0","cwd":"/repo","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"undefined: x"}]}}
{"type":"assistant","uuid":"00000000-0000-4000-8000-000000000004","parentUuid":"00000000-0000-4000-8000-000000000003","isSidechain":false,"sessionId":"00000000-0000-4000-8000-0000000000aa","timestamp":"2026-01-05T09:00:03Z","version":"1.0.0","cwd":"/repo","message":{"id":"msg_2","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[{"type":"text","text":"x is undefined."}]}}
`
	path := filepath.Join(t.TempDir(), "talk.jsonl")
	if err := os.WriteFile(path, []byte(talk), 0o600); err != nil {
		t.Fatal(err)
	}
	address, token := inspecting(t, path)
	var all *contextdv1.ListProjectionsResponse
	for len(all.GetProjections()) < 2 { // contexts are assembled while the page is served
		var err error
		all, err = ask[contextdv1.ListProjectionsRequest, contextdv1.ListProjectionsResponse](t, address, token,
			contextdv1.ContextService_ListProjections_FullMethodName, &contextdv1.ListProjectionsRequest{SessionId: "talk"})
		if err != nil {
			t.Fatal(err)
		}
	}
	for i, asOf := range []uint64{1, 3} {
		p := all.GetProjections()[i]
		if p.GetAsOfSeq() != asOf || p.GetBudget().GetTargetTokens() < 100_000 || p.GetBudget().GetTierTokens()["dialogue"] == 0 || p.GetMessageCount() == 0 {
			t.Errorf("context %d is %v", i, p)
		}
	}
	if c := all.GetProjections()[1].GetCache(); c.GetStableMessages() != 1 || c.GetBrokenBy() != "" {
		t.Errorf("the prefix is %v", c)
	}
	if _, err := ask[contextdv1.ListSessionsRequest, contextdv1.ListSessionsResponse](t, address, "guessed",
		contextdv1.ContextService_ListSessions_FullMethodName, &contextdv1.ListSessionsRequest{}); connect.CodeOf(err) != connect.CodeUnauthenticated {
		t.Errorf("with another token: %v", err)
	}
}
