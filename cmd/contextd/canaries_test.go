package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/contextd/contextd/cmd/contextd/internal/cli"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// canary matches the words that tests use in place of content and secrets.
var canary = regexp.MustCompile(`canary-\w+|AGE-SECRET-KEY-\w+`)

// canaryCall is a call in testdata/canaries.txt.
type canaryCall struct {
	method protoreflect.MethodDescriptor
	code   string // of the expected answer; empty for OK
	text   string
}

func canaryCalls(t *testing.T) (all []canaryCall) {
	t.Helper()
	table, err := os.ReadFile("testdata/canaries.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range strings.Split(string(table), "\n== ")[1:] {
		head, text, _ := strings.Cut(part, "\n")
		method, code, _ := strings.Cut(head, " ")
		found, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(strings.ReplaceAll(method, "/", ".")))
		if err != nil {
			t.Fatalf("%s: %v", method, err)
		}
		all = append(all, canaryCall{found.(protoreflect.MethodDescriptor), code, strings.ReplaceAll(text, "{large}", strings.Repeat("word ", 1<<18))})
	}
	return all
}

// make makes a call of any kind and returns its error.
func (c canaryCall) make(t *testing.T, conn *grpc.ClientConn) error {
	t.Helper()
	ctx := metadata.AppendToOutgoingContext(t.Context(), "x-note", "canary-metadata", "baggage", "note=canary-baggage,canary-badbaggage")
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, fmt.Sprintf("/%s/%s", c.method.Parent().FullName(), c.method.Name()))
	if err != nil {
		t.Fatal(err)
	}
	input, err := protoregistry.GlobalTypes.FindMessageByName(c.method.Input().FullName())
	if err != nil {
		t.Fatal(err)
	}
	output, err := protoregistry.GlobalTypes.FindMessageByName(c.method.Output().FullName())
	if err != nil {
		t.Fatal(err)
	}
	for text := range strings.SplitSeq(c.text, "\n--\n") {
		request := input.New().Interface()
		if err := prototext.Unmarshal([]byte(text), request); err != nil {
			t.Fatalf("%s: %v", c.method.FullName(), err)
		}
		_ = stream.SendMsg(request) // Recv returns the error too
	}
	_ = stream.CloseSend()
	for err == nil {
		err = stream.RecvMsg(output.New().Interface())
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// canaryModels are summarizers whose endpoints echo their requests: as successes, as failures, and as invalid
// answers.
func canaryModels(t *testing.T, dir string) (settings string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		echo := fmt.Sprintf("%q", fmt.Sprint(r.Header, r.URL, string(body)))
		switch kind, _, _ := strings.Cut(r.URL.Path[1:], "/"); kind {
		case "refusing":
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = fmt.Fprintf(w, `{"error":{"code":"canary-code","message":%s}}`, echo)
		case "failing":
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = fmt.Fprintf(w, `{"error":{"message":%s}}`, echo)
		case "garbled":
			_, _ = fmt.Fprintf(w, `{"choices": canary-garbled %s`, echo)
		default:
			_, _ = io.WriteString(w, `{"model":"canary-password","choices":[{"message":{"content":"canary-summary: the user asked for a file."},"finish_reason":"stop"}]}`)
		}
	}))
	t.Cleanup(server.Close)
	key := filepath.Join(dir, "api.key")
	if err := os.WriteFile(key, []byte("canary-api-key\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	key = ", api_key_file: " + key
	for kind, address := range map[string]string{
		"refusing": fmt.Sprintf("%q", server.URL+"/refusing") + key,
		"failing":  fmt.Sprintf("%q", server.URL+"/failing?key=canary-query") + key,
		"garbled":  fmt.Sprintf("%q", server.URL+"/garbled") + key,
		"good":     fmt.Sprintf("%q", strings.Replace(server.URL, "//", "//canary-name:canary-password@", 1)+"/good"),
	} {
		settings += fmt.Sprintf("  %s: {type: openai, model: m, base_url: %s, max_attempts: 1, headers: {X-Team: canary-header}}\n", kind, address)
	}
	return "summarizers:\n" + settings
}

// TestCanaries passes content and secrets to the real program in every way that exists, and makes calls that
// fail for every kind of reason. Neither its log, metrics, traces nor arguments may contain any of it, and
// errors may only contain what the caller itself sent.
func TestCanaries(t *testing.T) {
	dir := t.TempDir()
	binary := build(t)
	file := func(name, content string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	output := func(args ...string) string {
		t.Helper()
		out, err := exec.Command(binary, args...).Output()
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	output("keygen", filepath.Join(dir, "store.key"))
	tokens := file("tokens.yaml", output("token", "--name", "ci", "--tenant", "team", "--out", filepath.Join(dir, "ci.token")))
	settings := file("contextd.yaml", canaryModels(t, dir)+"max_event_bytes: 1MiB\nscrub_patterns: {badge: 'canary-badge'}\n")
	metrics, traces := freeAddress(t), &lines{}
	serve := exec.Command(binary, append(faultArgs(filepath.Join(dir, "data")), "--config="+settings, "--auth-tokens="+tokens, "--metrics-listen="+metrics,
		"--encryption-key-file="+filepath.Join(dir, "store.key"), "--log-level=debug")...)
	serve.Env = append(os.Environ(), "OTEL_TRACES_EXPORTER=console", "OTEL_BSP_SCHEDULE_DELAY=100", "OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental")
	serve.Stdout = traces
	p := spawn(t, serve)

	for _, c := range canaryCalls(t) {
		err := c.make(t, p.conn)
		if got := status.Code(err); c.code == "" && err != nil || c.code != "" && !strings.EqualFold(strings.ReplaceAll(c.code, "_", ""), got.String()) {
			t.Errorf("%s of %.200s: %v", c.method.Name(), c.text, err)
		}
		for _, word := range canary.FindAllString(prototext.Format(status.Convert(err).Proto()), -1) {
			if !strings.Contains(c.text, word) {
				t.Errorf("%s: the error shows %s: %v", c.method.Name(), word, err)
			}
		}
	}
	vetoed(t, p)
	token := file("wrong.token", "canary-token")
	for _, args := range [][]string{{"sessions", "list"}, {"append", "s"}} {
		cmd := exec.Command(binary, append(args, "--addr=unix://"+p.socket, "--token-file="+token)...)
		cmd.Stdin = strings.NewReader(`{"message":{"role":"ROLE_USER","blocks":[{"text":{"text":"canary-stdin"}}]}}`)
		if out, err := cmd.CombinedOutput(); err == nil || canary.Match(out) {
			t.Errorf("%s with a wrong token: %v, %s", args, err, out)
		}
	}

	scrape, err := http.Get("http://" + metrics + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer scrape.Body.Close()
	measured, err := io.ReadAll(scrape.Body)
	if err != nil {
		t.Fatal(err)
	}
	arguments, err := exec.Command("ps", "-ww", "-o", "args=", "-p", fmt.Sprint(serve.Process.Pid)).Output()
	if err != nil {
		t.Errorf("ps: %v", err)
	}
	if err := serve.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code := p.wait(t); code != cli.ExitOK {
		t.Errorf("it ended with %d", code)
	}
	secret, err := os.ReadFile(filepath.Join(dir, "ci.token"))
	if err != nil {
		t.Fatal(err)
	}
	for where, in := range map[string]struct{ text, surely string }{
		"the log":       {p.log.String(), "the bearer token is not known"},
		"a trace":       {traces.String(), "AssembleContext"},
		"a metric":      {string(measured), "contextd_assembly_count_total"},
		"the arguments": {string(arguments), "--auth-tokens"},
	} {
		if !strings.Contains(in.text, in.surely) {
			t.Errorf("%s: there is no %s:\n%s", where, in.surely, in.text)
		}
		for line := range strings.Lines(in.text) {
			if words := canary.FindAllString(line, -1); words != nil || strings.Contains(line, strings.TrimSpace(string(secret))) {
				t.Errorf("%s holds %v: %s", where, words, line)
			}
		}
	}
}

// vetoed makes a hook veto a compaction. Only the caller may see the hook's reason.
func vetoed(t *testing.T, p *process) {
	t.Helper()
	client := contextdv1.NewCompactionServiceClient(p.dial(t))
	hooks, err := client.ServeHooks(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := hooks.Send(&contextdv1.ServeHooksRequest{Part: &contextdv1.ServeHooksRequest_Subscribe{Subscribe: &contextdv1.HookSubscription{PreCompact: true}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := hooks.Header(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		resp, err := client.CompactSession(t.Context(), &contextdv1.CompactSessionRequest{SessionId: "s", Strategy: "window", KeepLastTurns: 1})
		if err == nil && resp.GetOutcome() != "vetoed" {
			err = fmt.Errorf("the compaction was not vetoed: %v", resp)
		}
		done <- err
	}()
	call, err := hooks.Recv()
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{call.GetCall().GetCallId(), "1"} {
		if err := hooks.Send(&contextdv1.ServeHooksRequest{Part: &contextdv1.ServeHooksRequest_Reply{Reply: &contextdv1.HookReply{CallId: id, Decision: "block", Reason: "canary-reason"}}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	for err == nil {
		_, err = hooks.Recv()
	}
	if status.Code(err) != codes.InvalidArgument {
		t.Errorf("a reply to no call: %v", err)
	}
}
