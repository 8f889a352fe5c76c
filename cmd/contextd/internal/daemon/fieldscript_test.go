package daemon_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protopath"
	"google.golang.org/protobuf/reflect/protorange"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/contextd/contextd/cmd/contextd/internal/config"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// script runs steps, one a line:
//
//	RPC JSON         a call, to its end
//	+ JSON           one more request of the call before
//	open NAME RPC JSON, send NAME JSON, next NAME, end NAME
//	                 a call beside the others, one more request, one answer, the rest
//
// ${name} is a word or the value that a field of this name had last in an answer, and
// ${text*9} nine times the text.
type script struct {
	words  map[string]string
	before string
}

// answer is a message that a call received, or how it failed.
type answer struct {
	to, err string
	// values are the texts of the fields, by path without indexes; paths is their order.
	values map[string][]string
	paths  []string
}

var brackets = regexp.MustCompile(`(?s)<<(?:([^|>]*)\|)?(.*?)>>`)

// run runs a case with or without what its brackets hold, on a daemon of its own.
func (s *script) run(t *testing.T, steps string, with bool) []answer {
	t.Helper()
	group := "$1"
	if with {
		group = "$2"
	}
	steps = brackets.ReplaceAllString(s.before+"\n"+steps, group)
	c := settings(t, func(c *config.Config) {
		c.LogLevel = slog.LevelError
		c.HookOnTimeout, c.HookTimeout = "block", 20*time.Millisecond
		if !strings.Contains(steps, "Backup {") { // which needs files
			c.Store = config.StoreMemory
		}
		c.Summarizers = map[string]config.Summarizer{"runtime": {Type: config.SummarizerPull}}
		c.DefaultBudget = &contextdv1.Budget{MaxTokens: 20_000, Tokenizer: "o200k_base"}
	})
	o := options(t, c)
	o.Clock = func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }
	d := startWith(t, o)
	defer d.end(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	r := scriptRun{script: s, conn: d.conn, began: time.Now(), open: map[string]*openCall{}, seen: map[string]string{}}
	lines := strings.Split(strings.TrimSpace(steps), "\n")
	for i := 0; i < len(lines); i++ {
		requests := []string{lines[i]}
		for ; i+1 < len(lines) && strings.HasPrefix(lines[i+1], "+ "); i++ {
			requests = append(requests, lines[i+1][2:])
		}
		r.step(ctx, t, requests)
	}
	return r.answers
}

// scriptRun is a run of a script.
type scriptRun struct {
	*script
	conn    *grpc.ClientConn
	began   time.Time
	open    map[string]*openCall
	seen    map[string]string
	answers []answer
}

type openCall struct {
	grpc.ClientStream
	method protoreflect.MethodDescriptor
}

func (r *scriptRun) step(ctx context.Context, t *testing.T, requests []string) {
	t.Helper()
	verb, rest, _ := strings.Cut(requests[0], " ")
	if verb == "" {
		return
	}
	name, text, _ := strings.Cut(rest, " ")
	switch verb {
	case "open":
		rpc, first, _ := strings.Cut(text, " ")
		c := r.call(ctx, t, rpc, first)
		r.open[name] = c
		if rpc == "ServeHooks" || rpc == "WatchLifecycle" {
			if _, err := c.Header(); err != nil { // it is subscribed then
				t.Fatal(err)
			}
		}
	case "send":
		r.send(t, r.open[name], text)
	case "next":
		r.receive(t, r.open[name])
	case "end":
		r.finish(t, r.open[name])
	default:
		r.finish(t, r.call(ctx, t, verb, append([]string{rest}, requests[1:]...)...))
	}
}

func (r *scriptRun) call(ctx context.Context, t *testing.T, rpc string, requests ...string) *openCall {
	t.Helper()
	m := methods()[rpc]
	if m == nil {
		t.Fatalf("there is no RPC %s", rpc)
	}
	stream, err := r.conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: m.IsStreamingClient(), ServerStreams: m.IsStreamingServer()},
		fmt.Sprintf("/%s/%s", m.Parent().FullName(), m.Name()))
	if err != nil {
		t.Fatal(err)
	}
	c := &openCall{stream, m}
	for _, text := range requests {
		r.send(t, c, text)
	}
	return c
}

func (r *scriptRun) send(t *testing.T, c *openCall, text string) {
	t.Helper()
	req := empty(t, c.method.Input())
	if text = r.expand(t, text, r.seen); text != "" {
		if err := protojson.Unmarshal([]byte(text), req); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	if err := c.SendMsg(req); err != nil && !errors.Is(err, io.EOF) { // why, says the answer
		t.Fatal(err)
	}
}

func (r *scriptRun) finish(t *testing.T, c *openCall) {
	t.Helper()
	if err := c.CloseSend(); err != nil {
		t.Fatal(err)
	}
	for more := true; more; {
		more = r.receive(t, c) && c.method.IsStreamingServer()
	}
}

// receive takes an answer, and reports whether there may be more.
func (r *scriptRun) receive(t *testing.T, c *openCall) bool {
	t.Helper()
	m := empty(t, c.method.Output())
	err := c.RecvMsg(m)
	if errors.Is(err, io.EOF) {
		return false
	}
	a := answer{to: string(c.method.Name()), values: map[string][]string{}}
	if status.Code(err) == codes.DeadlineExceeded {
		t.Fatalf("%s did not answer; before it came %v", c.method.Name(), r.answers)
	}
	if err != nil {
		a.err = failure(err)
	} else if err := r.read(&a, m); err != nil {
		t.Fatal(err)
	}
	r.answers = append(r.answers, a)
	return err == nil
}

// failure is the code of an error, the fields that it names, and its message.
func failure(err error) string {
	s := status.Convert(err)
	out := []string{codeNames[s.Code()]}
	for _, d := range s.Details() {
		if bad, ok := d.(*errdetails.BadRequest); ok {
			for _, v := range bad.GetFieldViolations() {
				out = append(out, v.GetField())
			}
		}
	}
	return strings.Join(out, " ") + ": " + s.Message()
}

var codeNames = map[codes.Code]string{
	codes.InvalidArgument: "INVALID_ARGUMENT", codes.NotFound: "NOT_FOUND", codes.AlreadyExists: "ALREADY_EXISTS",
	codes.FailedPrecondition: "FAILED_PRECONDITION", codes.Aborted: "ABORTED",
}

// differs are fields that differ in each run.
var differs = map[protoreflect.Name]bool{"incarnation": true, "chain_head": true, "task_id": true, "policy_fingerprint": true}

var uuid = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// read takes the values of an answer apart.
func (r *scriptRun) read(a *answer, m proto.Message) error {
	var names []string
	var last protoreflect.Name
	return protorange.Options{Stable: true}.Range(m.ProtoReflect(), func(p protopath.Values) error {
		step := p.Index(-1).Step
		if step.Kind() == protopath.FieldAccessStep {
			last = step.FieldDescriptor().Name()
			names = append(names, string(last))
		}
		value, ok := r.text(p.Index(-1).Value)
		if _, partOfTime := r.text(p.Index(-2).Value); !ok || partOfTime {
			return nil
		}
		r.seen[string(last)] = value
		if step.Kind() == protopath.MapIndexStep {
			value = fmt.Sprintf("%s=%s", step.MapIndex().String(), value)
		}
		if differs[last] {
			value = "set"
		}
		path := strings.Join(names, ".")
		if a.values[path] == nil {
			a.paths = append(a.paths, path)
		}
		a.values[path] = append(a.values[path], uuid.ReplaceAllString(value, "UUID"))
		return nil
	}, func(p protopath.Values) error {
		if p.Index(-1).Step.Kind() == protopath.FieldAccessStep {
			names = names[:len(names)-1]
		}
		return nil
	})
}

// text is a value that has no parts. Times of no clock but the machine's are "now", or
// "later".
func (r *scriptRun) text(v protoreflect.Value) (string, bool) {
	switch v := v.Interface().(type) {
	case protoreflect.List, protoreflect.Map:
		return "", false
	case protoreflect.Message:
		at, ok := v.Interface().(*timestamppb.Timestamp)
		if !ok {
			return "", false
		}
		switch since := at.AsTime().Sub(r.began); {
		case since < -time.Minute:
			return at.AsTime().Format(time.RFC3339), true
		case since < 20*time.Minute:
			return "now", true
		default:
			return "later", true
		}
	case []byte:
		return string(v), true
	default:
		return fmt.Sprint(v), true
	}
}

var variable = regexp.MustCompile(`\$\{([^}*]*)(\*\d+)?\}`)

// expand puts words, and what answers said, in their places.
func (s *script) expand(t *testing.T, text string, seen map[string]string) string {
	t.Helper()
	for variable.MatchString(text) {
		text = variable.ReplaceAllStringFunc(text, func(found string) string {
			m := variable.FindStringSubmatch(found)
			if m[2] != "" {
				n, err := strconv.Atoi(m[2][1:])
				if err != nil {
					t.Fatal(err)
				}
				return strings.Repeat(m[1], n)
			}
			if word, ok := s.words[m[1]]; ok {
				return word
			}
			value, ok := seen[m[1]]
			if !ok {
				t.Fatalf("nothing says what %s is", found)
			}
			return value
		})
	}
	return text
}

func empty(t *testing.T, d protoreflect.MessageDescriptor) proto.Message {
	t.Helper()
	kind, err := protoregistry.GlobalTypes.FindMessageByName(d.FullName())
	if err != nil {
		t.Fatal(err)
	}
	return kind.New().Interface()
}
