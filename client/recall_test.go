package client_test

import (
	"bufio"
	"encoding/json"
	"flag"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/contextd/contextd/client"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

var rewrite = flag.Bool("rewrite", false, "write testdata instead of comparing with it")

// recallVectors are what the tools of a session answer: the tests of all clients are held to
// the same file.
type recallVectors struct {
	Policy json.RawMessage            `json:"policy"`
	Events []json.RawMessage          `json:"events"`
	Tools  map[string]json.RawMessage `json:"tools"` // by format
	Calls  []recallCall               `json:"calls"`
}

type recallCall struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
	Text      string `json:"text"`
	IsError   bool   `json:"is_error"`
}

const vectorsFile = "testdata/recall.json"

func readVectors(t *testing.T) recallVectors {
	t.Helper()
	data, err := os.ReadFile(vectorsFile)
	if err != nil {
		t.Fatal(err)
	}
	var v recallVectors
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// fill makes the session s of the vectors.
func (v recallVectors) fill(t *testing.T, c *client.Client) {
	t.Helper()
	policy := &contextdv1.Policy{}
	if err := protojson.Unmarshal(v.Policy, policy); err != nil {
		t.Fatal(err)
	}
	if _, err := c.CreateSession(t.Context(), &contextdv1.CreateSessionRequest{SessionId: "s", Policy: policy}); err != nil {
		t.Fatal(err)
	}
	for _, raw := range v.Events {
		e := &contextdv1.Event{}
		if err := protojson.Unmarshal(raw, e); err != nil {
			t.Fatal(err)
		}
		appendTo(t, c, "s", e)
	}
}

func TestRecallTools(t *testing.T) {
	v := readVectors(t)
	c := inMemory(t)
	v.fill(t, c)
	got := recallVectors{Policy: v.Policy, Events: v.Events, Tools: map[string]json.RawMessage{}}
	for _, format := range slices.Sorted(maps.Keys(contextdv1.Format_name)) {
		tools, err := c.RecallTools(t.Context(), &contextdv1.ListRecallToolsRequest{SessionId: "s", Format: contextdv1.Format(format)})
		if err != nil {
			t.Fatal(err)
		}
		if len(tools.Schemas) > 0 {
			got.Tools[strings.ToLower(strings.TrimPrefix(contextdv1.Format_name[format], "FORMAT_"))] = tools.Schemas
		}
	}
	tools, err := c.RecallTools(t.Context(), &contextdv1.ListRecallToolsRequest{SessionId: "s"})
	if err != nil || !tools.Has("look_up") || !tools.Has("search_log") || tools.Has("bash") {
		t.Fatal(tools.Tools, err)
	}
	for _, call := range v.Calls {
		answer, err := tools.Call(t.Context(), call.Name, []byte(call.Arguments))
		if err != nil {
			t.Fatal(err)
		}
		got.Calls = append(got.Calls, recallCall{call.Name, call.Arguments, answer.GetText(), answer.GetIsError()})
	}
	if *rewrite {
		var out strings.Builder
		e := json.NewEncoder(&out)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		if err := e.Encode(got); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(vectorsFile, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(v.Calls, got.Calls); diff != "" {
		t.Error(diff)
	}
	for format, want := range v.Tools {
		var a, b any
		if json.Unmarshal(want, &a) != nil || json.Unmarshal(got.Tools[format], &b) != nil || !cmp.Equal(a, b) {
			t.Errorf("the tools of %s are %s", format, got.Tools[format])
		}
	}
	if len(got.Tools) != len(v.Tools) || len(v.Tools) < 4 {
		t.Errorf("%d formats have tools, not %d", len(got.Tools), len(v.Tools))
	}

	// What takes the place of a result can be called as it is written.
	context, err := c.Assemble(t.Context(), &contextdv1.AssembleContextRequest{SessionId: "s", Budget: &contextdv1.Budget{MaxTokens: 2000}})
	if err != nil {
		t.Fatal(err)
	}
	var shown strings.Builder
	for _, m := range context.Messages {
		shown.Write(m.GetJson())
	}
	found := regexp.MustCompile(`look_up\(pointer: \\"(ctx:\d+\.\d+)\\"\)`).FindStringSubmatch(shown.String())
	if found == nil {
		t.Fatalf("nothing says how to call the tool:\n%s", shown.String())
	}
	answer, err := tools.Call(t.Context(), "look_up", []byte(`{"pointer":"`+found[1]+`"}`))
	if err != nil || answer.GetIsError() {
		t.Errorf("%s is %v, %v", found[0], answer, err)
	}
}

// A client of the Model Context Protocol gets the same texts, over stdin and over HTTP.
func TestRecallOverMCP(t *testing.T) {
	v := readVectors(t)
	d := start(t, "127.0.0.1:0", "--store", "memory")
	v.fill(t, d.connect(t))
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	check := func(t *testing.T, transport mcp.Transport) {
		session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), transport, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer session.Close()
		listed, err := session.ListTools(t.Context(), nil)
		if err != nil || len(listed.Tools) != 3 {
			t.Fatal(listed, err)
		}
		for _, tool := range listed.Tools {
			if !tool.Annotations.ReadOnlyHint {
				t.Errorf("%s is not said to be read-only", tool.Name)
			}
		}
		calls := 0
		for _, call := range v.Calls {
			name := call.Name
			if name == "look_up" {
				name = "recall" // hosts name tools themselves
			}
			if !json.Valid([]byte(call.Arguments)) || name == "bash" {
				continue // no client would send it
			}
			calls++
			result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: json.RawMessage(call.Arguments)})
			if err != nil {
				t.Fatal(err)
			}
			text := result.Content[0].(*mcp.TextContent).Text
			if text != call.Text || result.IsError != call.IsError || len(result.Content) != 1 {
				t.Errorf("%s(%s) is %q", name, call.Arguments, text)
			}
		}
		if calls < 5 {
			t.Errorf("only %d calls were made", calls)
		}
	}
	t.Run("stdio", func(t *testing.T) {
		check(t, &mcp.CommandTransport{Command: exec.Command(path, "mcp", "--addr", d.address, "--session", "s")})
	})
	t.Run("http", func(t *testing.T) {
		cmd := exec.Command(path, "mcp", "--addr", d.address, "--listen", "127.0.0.1:0")
		out, err := cmd.StderrPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Error(err)
			}
			if err := cmd.Wait(); err != nil {
				t.Errorf("it ended with %v", err)
			}
		}()
		line, err := bufio.NewReader(out).ReadString('\n')
		_, endpoint, ok := strings.Cut(strings.TrimSpace(line), "listening at ")
		if err != nil || !ok {
			t.Fatal(line, err)
		}
		of := &http.Client{Transport: withHeader{"Contextd-Session", "s"}}
		defer http.DefaultTransport.(*http.Transport).CloseIdleConnections()
		check(t, &mcp.StreamableClientTransport{Endpoint: endpoint, HTTPClient: of, DisableStandaloneSSE: true})
	})
}

type withHeader struct{ name, value string }

func (h withHeader) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set(h.name, h.value)
	return http.DefaultTransport.RoundTrip(r)
}
