package daemon_test

import (
	"encoding/hex"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// hostileCall is a call to make.
type hostileCall struct {
	tenant   string
	forged   bool // the token is no tenant's
	method   protoreflect.MethodDescriptor
	payloads [][]byte
}

// authorization is the caller's token, or something like it.
func (c hostileCall) authorization(tokens map[string]string) string {
	if !c.forged {
		return "Bearer " + tokens[c.tenant]
	}
	first := tokens["first"]
	return []string{"", "Bearer ", first, "Bearer " + first[:len(first)-1], "Bearer " + first + "A", "Basic " + first, "Bearer *", strings.Repeat("Bearer ", 200)}[len(c.payloads)%8]
}

// String is the call with its requests, as JSON where they can be decoded, and as bytes.
func (c hostileCall) String() string {
	var out strings.Builder
	fmt.Fprintf(&out, "-seed=%d, as tenant %q:", *hostileSeed, c.tenant)
	for _, payload := range c.payloads {
		kind, err := protoregistry.GlobalTypes.FindMessageByName(c.method.Input().FullName())
		if err == nil {
			m := kind.New().Interface()
			if proto.Unmarshal(payload, m) == nil {
				fmt.Fprintf(&out, "\n%.4000s", protojson.MarshalOptions{}.Format(m))
			}
		}
		fmt.Fprintf(&out, "\nhex %.8000s", hex.EncodeToString(payload))
	}
	return out.String()
}

// requests makes calls up.
type requests struct {
	*rand.Rand
	methods     []protoreflect.MethodDescriptor
	examples    map[protoreflect.Name][][]proto.Message
	transcripts [][]byte
	// rate is how often a value of the call in the making is hostile.
	rate float64

	mu sync.Mutex
	// seen are the texts of answers, by the name of the field: what a client has learned.
	seen map[string][]string
	// recorded are ids of projections with their sessions'.
	recorded [][2]string
}

// newRequests makes the same calls for the same seed and the same answers. The names are those
// of another tenant's, which somebody gave away.
func newRequests(t *testing.T, seed uint64, examples []example, names map[string]string) *requests {
	t.Helper()
	r := &requests{Rand: rand.New(rand.NewPCG(seed, 0)), examples: map[protoreflect.Name][][]proto.Message{}, seen: map[string][]string{}}
	names = maps.Clone(names)
	names["label"] = "label" // the label itself is the secret
	for _, e := range examples {
		name := e.method.Name()
		r.examples[name] = append(r.examples[name], e.messages(t, names), e.messages(t, map[string]string{"session": "s1", "pointer": "ctx:1.0", "toolcall": "c1"}))
	}
	long := &contextdv1.AppendEventsRequest{SessionId: "s1"}
	for range 10 {
		story := text(strings.Repeat("a long story ", 100))
		long.Events = append(long.Events, said(contextdv1.Role_ROLE_USER, story), said(contextdv1.Role_ROLE_ASSISTANT, story))
	}
	r.examples["AppendEvents"] = append(r.examples["AppendEvents"], []proto.Message{long})
	r.examples["CompactSession"] = append(r.examples["CompactSession"], []proto.Message{
		&contextdv1.CompactSessionRequest{SessionId: "s1", Strategy: "summarize", KeepLastTurns: 1},
	})
	all := methods()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		for range calledOften[name] + 1 {
			r.methods = append(r.methods, all[name])
		}
	}
	for i := range 8 {
		r.seen["session_id"] = append(r.seen["session_id"], fmt.Sprintf("s%d", i))
		r.seen["call_id"] = append(r.seen["call_id"], fmt.Sprintf("c%d", i))
	}
	for field, kind := range map[string]string{
		"session_id": "session", "event_id": "event", "call_id": "toolcall", "incarnation": "incarnation", "projection_id": "projection",
		"prefix_hash": "hash", "next_page_token": "page", "task_id": "task", "summary_id": "summary", "idempotency_key": "key",
	} {
		r.seen[field] = append(r.seen[field], names[kind])
	}
	r.transcripts = transcripts(t)
	return r
}

// calledOften has the methods that others need the work of.
var calledOften = map[string]int{"AppendEvents": 6, "AssembleContext": 4, "ImportTranscript": 2, "AppendEventStream": 1, "CompactSession": 1}

// next makes a call up.
func (r *requests) next() hostileCall {
	c := hostileCall{tenant: "t1", method: pick(r, r.methods)}
	c.forged = r.IntN(100) == 0
	if r.IntN(4) == 0 {
		c.tenant = ""
	}
	r.rate = pick(r, []float64{0, 0, 0.02, 0.1, 0.5})
	for _, m := range r.messages(c.method) {
		b, err := proto.MarshalOptions{AllowPartial: true, Deterministic: true}.Marshal(m)
		if err != nil {
			panic(err) // the generator makes no text that is not UTF-8
		}
		b = brokenText(b)
		if r.IntN(6) == 0 {
			b = r.broken(b)
		}
		c.payloads = append(c.payloads, b)
	}
	return c
}

// messages are those of a call: an example with changes, or made from the descriptor.
func (r *requests) messages(method protoreflect.MethodDescriptor) []proto.Message {
	if examples := r.examples[method.Name()]; r.IntN(4) == 0 {
		var out []proto.Message
		for _, m := range pick(r, examples) {
			m = proto.Clone(m)
			for range r.IntN(3) {
				r.change(m.ProtoReflect())
			}
			out = append(out, m)
		}
		return out
	}
	n := 1
	if method.IsStreamingClient() {
		n = 1 + r.IntN(4)
	} else if r.rate > 0.3 && r.IntN(20) == 0 {
		n = r.IntN(3)
	}
	kind, err := protoregistry.GlobalTypes.FindMessageByName(method.Input().FullName())
	if err != nil {
		panic(err)
	}
	var out []proto.Message
	for i := range n {
		m := kind.New()
		r.fill(m, 0)
		// The first part of a stream is its header, mostly.
		if of := method.Input().Oneofs(); method.IsStreamingClient() && of.Len() > 0 && r.IntN(10) > 0 {
			part := of.Get(0).Fields().Get(min(i, 1))
			r.set(m, part, 0)
		}
		if m.Descriptor().Fields().ByName("projection_id") != nil && r.IntN(2) == 0 {
			r.nameProjection(m)
		}
		out = append(out, m.Interface())
	}
	return out
}

// nameProjection has a request name a projection that was there a while ago.
func (r *requests) nameProjection(m protoreflect.Message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.recorded) > 0 {
		of := pick(r, r.recorded)
		m.Set(m.Descriptor().Fields().ByName("session_id"), protoreflect.ValueOfString(of[0]))
		m.Set(m.Descriptor().Fields().ByName("projection_id"), protoreflect.ValueOfString(of[1]))
	}
}

// change sets one part of a message to another value.
func (r *requests) change(m protoreflect.Message) {
	fields := m.Descriptor().Fields()
	f := fields.Get(r.IntN(fields.Len()))
	if f.Message() != nil && !f.IsList() && !f.IsMap() && m.Has(f) && r.IntN(4) > 0 {
		r.change(m.Mutable(f).Message())
		return
	}
	rate := r.rate
	r.rate = 0.5
	r.set(m, f, 1)
	r.rate = rate
}

// fill sets fields of a message: what is required, mostly, and some of the rest.
func (r *requests) fill(m protoreflect.Message, depth int) {
	if m.Descriptor().FullName().Parent() == "google.protobuf" {
		r.fillTime(m)
		return
	}
	for i := range m.Descriptor().Oneofs().Len() {
		if of := m.Descriptor().Oneofs().Get(i); !of.IsSynthetic() && !r.hostile() {
			field := of.Fields().Get(r.IntN(of.Fields().Len()))
			if depth > 3 { // blocks of blocks of blocks
				field = of.Fields().Get(0)
			}
			r.set(m, field, depth+1)
		}
	}
	for i := range m.Descriptor().Fields().Len() {
		f := m.Descriptor().Fields().Get(i)
		if of := f.ContainingOneof(); of != nil && !of.IsSynthetic() {
			continue
		}
		if wanted := r.IntN(3+depth) == 0; required(f) != r.hostile() || wanted {
			r.set(m, f, depth+1)
		}
	}
	if !r.hostile() {
		r.makeSense(m.Interface())
	}
}

// makeSense mends what rules about several fields refuse, so that calls reach what comes
// after these.
func (r *requests) makeSense(m proto.Message) {
	switch m := m.(type) {
	case *contextdv1.Message:
		m.Role = r.roleOf(m)
	case *contextdv1.Injection:
		m.Blocks = []*contextdv1.Block{text("in")}
	case *contextdv1.ToolResult:
		m.Content = []*contextdv1.Block{text(strings.Repeat("a line of a result\n", r.IntN(200)))}
	case *contextdv1.AppendEventsRequest:
		if r.IntN(4) > 0 {
			m.ExpectedHead, m.Known = nil, nil
		}
	case *contextdv1.HookSubscription:
		m.PreCompact = true
	case *contextdv1.CompleteSummaryTaskRequest:
		m.Error = ""
	case *contextdv1.LeaseSummaryTasksRequest:
		m.SessionIds = nil
	}
}

// roleOf makes the blocks of a message be of one kind, and returns who says that.
func (r *requests) roleOf(m *contextdv1.Message) contextdv1.Role {
	m.Blocks = m.GetBlocks()[:min(1, len(m.GetBlocks()))]
	for _, b := range m.GetBlocks() {
		switch {
		case b.GetToolCall() != nil, b.GetThinking() != nil:
			return contextdv1.Role_ROLE_ASSISTANT
		case b.GetToolResult() != nil:
			return contextdv1.Role_ROLE_TOOL
		}
	}
	return pick(r, []contextdv1.Role{contextdv1.Role_ROLE_USER, contextdv1.Role_ROLE_USER, contextdv1.Role_ROLE_ASSISTANT})
}

// required reports whether the rules want a field, or nothing works without it.
func required(f protoreflect.FieldDescriptor) bool {
	rules, _ := proto.GetExtension(f.Options(), validate.E_Field).(*validate.FieldRules)
	return rules.GetRequired() || rules.GetString().GetMinLen() > 0 || rules.GetRepeated().GetMinItems() > 0 ||
		rules.GetBytes().GetMinLen() > 0 || len(rules.GetEnum().GetNotIn()) > 0 || requiredNames[f.Name()]
}

var requiredNames = map[protoreflect.Name]bool{"text": true, "arguments_json": true, "json": true, "task_id": true, "projection_id": true, "data": true}

func (r *requests) hostile() bool { return r.Float64() < r.rate }

// set gives a field a value.
func (r *requests) set(m protoreflect.Message, f protoreflect.FieldDescriptor, depth int) {
	n := 1 + r.IntN(3)
	if r.hostile() {
		n = pick(r, []int{0, 1, 65, 300})
	}
	if depth > 3 {
		n = min(n, 3)
	}
	switch {
	case f.IsMap():
		of := m.Mutable(f).Map()
		for range n {
			value := of.NewValue()
			if f.MapValue().Message() != nil {
				r.fill(value.Message(), depth+1)
			} else {
				value = r.scalar(f.MapValue())
			}
			of.Set(r.scalar(f.MapKey()).MapKey(), value)
		}
	case f.IsList():
		of := m.Mutable(f).List()
		of.Truncate(0)
		for range n {
			if f.Message() != nil {
				r.fill(of.AppendMutable().Message(), depth)
			} else {
				of.Append(r.scalar(f))
			}
		}
	case f.Message() != nil:
		if depth < 40 && (depth < 6 || r.hostile()) {
			m.Clear(f)
			r.fill(m.Mutable(f).Message(), depth)
		}
	default:
		m.Set(f, r.scalar(f))
	}
}

// learn keeps the texts of an answer.
func (r *requests) learn(answer proto.Message) {
	values := map[string]map[string]bool{}
	used(answer.ProtoReflect(), values)
	r.mu.Lock()
	defer r.mu.Unlock()
	if a, ok := answer.(*contextdv1.AssembleContextResponse); ok && a.GetHeader().GetProjectionId() != "" {
		r.recorded = append(r.recorded[max(0, len(r.recorded)-20):], [2]string{a.GetHeader().GetSessionId(), a.GetHeader().GetProjectionId()})
	}
	for _, field := range slices.Sorted(maps.Keys(values)) {
		name := field[strings.LastIndexByte(field, '.')+1:]
		for _, text := range slices.Sorted(maps.Keys(values[field])) {
			const most, first = 64, 10
			known := r.seen[name]
			if len(text) > 300 || slices.Contains(known, text) {
				continue
			}
			if len(known) == most {
				known = slices.Delete(known, first, first+1) // the oldest of what was learned
			}
			r.seen[name] = append(known, text)
		}
	}
}

// known is a text that an answer had in a field of this name, often the newest.
func (r *requests) known(name string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.seen[name]
	switch {
	case len(known) == 0:
		return ""
	case r.IntN(3) == 0:
		return known[len(known)-1]
	default:
		return pick(r, known)
	}
}

func pick[T any](r *requests, from []T) T { return from[r.IntN(len(from))] }
