package daemon_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/contextd/contextd/cmd/contextd/internal/apierr"
	"github.com/contextd/contextd/cmd/contextd/internal/config"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

var (
	hostileCalls = flag.Int("calls", 10_000, "how many calls TestHostileCalls makes")
	hostileSeed  = flag.Uint64("seed", 1, "the seed of TestHostileCalls")
)

const (
	// hostileHeap is the most that the heap may hold while hostile calls run, client and daemon
	// together: several times the 20 MiB that were seen. The limits of hostileDaemon allow more.
	hostileHeap = 128 << 20
	// hostileTime is how long a call may take that waits for nobody.
	hostileTime = 30 * time.Second
	// hostileFaults is after how many faults a run ends.
	hostileFaults = 10
)

// waiting are the calls that last until a client ends them, or wait for a summary.
var waiting = map[protoreflect.Name]bool{
	"ReadEvents": true, "LeaseSummaryTasks": true, "ServeHooks": true, "WatchLifecycle": true,
	"CompactSession": true, "AssembleContext": true,
}

// TestHostileCalls makes calls of all methods, generated from their descriptors and from what
// earlier answers taught, as two clients that mean harm to a third. No call may crash the
// daemon or fail for a reason that is the daemon's; none may show or change what the third
// has; memory stays bounded, and is free again once the sessions are deleted.
//
// A run is decided by -seed, except for what depends on the order in which calls end that
// run at once. A fault shows its request in full.
func TestHostileCalls(t *testing.T) {
	of := startTenants(t, 1, hostileDaemon)
	t.Cleanup(func() { of.end(t) })
	h := &hostile{tenants: of, t: t, outcomes: map[protoreflect.Name]map[codes.Code]int{}}
	names, compacted := of.settle(t)
	ctx := of.as(t.Context(), "first")
	_, err := contextdv1.NewCompactionServiceClient(of.conn).CompleteSummaryTask(ctx, &contextdv1.CompleteSummaryTaskRequest{
		TaskId: names["task"], Text: "the agent called f eight times and read " + secret,
	})
	check(t, err)
	check(t, <-compacted)
	before, empty := h.owned(), heap()

	h.requests = newRequests(t, *hostileSeed, examples(t), names)
	t.Logf("-seed=%d -calls=%d", *hostileSeed, *hostileCalls)
	var most uint64
	for i := 1; i <= *hostileCalls && !h.enough(); i++ {
		h.start(h.requests.next())
		if i%1000 == 0 {
			most = max(most, heap())
		}
	}
	h.endAll()
	if most > hostileHeap {
		t.Errorf("%d MiB were held", most>>20)
	}

	if after := h.owned(); after != before {
		t.Errorf("what another tenant has was changed:\n%s\n%s", before, after)
	}
	h.deleteAll("t1", "")
	held := heap()
	if held > empty+hostileHeap/4 {
		t.Errorf("without sessions %d MiB are held; it was %d before", held>>20, empty>>20)
	}
	t.Logf("heap: %d MiB before, %d at most, %d without sessions", empty>>20, most>>20, held>>20)
	h.report()
}

// hostileDaemon has limits that calls of a test can reach.
func hostileDaemon(c *config.Config) {
	c.Summarizers = map[string]config.Summarizer{"house": {Type: config.SummarizerPull}}
	c.DefaultSummarizer = "house"
	c.HookTimeout = 50 * time.Millisecond
	c.CacheSessions, c.CacheMemory, c.WorkMemory = 8, 16<<20, 64<<20
	l := &c.Limits
	l.MaxEventBytes, l.MaxBatchBytes, l.MaxBatchEvents, l.MaxPolicyBytes = 1<<20, 2<<20, 500, 256<<10
	l.MaxSessions, l.MaxSessionEvents, l.MaxSessionBytes = 24, 1000, 1<<20
	l.MaxImportBytes, l.ImportMemory = 2<<20, 64<<20
	c.LogLevel = slog.LevelError
}

// hostile makes calls and judges the answers.
type hostile struct {
	*tenants
	t        *testing.T
	requests *requests
	running  []*attack

	mu       sync.Mutex
	outcomes map[protoreflect.Name]map[codes.Code]int
	faults   int
}

// attack is a call that was begun.
type attack struct {
	hostileCall
	ctx    context.Context
	cancel context.CancelFunc
	done   chan struct{}
}

// start makes a call. One that does not end soon goes on beside the next.
func (h *hostile) start(c hostileCall) {
	const atOnce, soon = 16, 5 * time.Millisecond
	ctx, cancel := context.WithTimeout(h.t.Context(), hostileTime)
	a := &attack{c, ctx, cancel, make(chan struct{})}
	go h.run(a)
	select {
	case <-a.done:
		return
	case <-time.After(soon):
	}
	h.running = slices.DeleteFunc(append(h.running, a), (*attack).ended)
	if len(h.running) > atOnce {
		h.running[0].end()
	}
}

func (a *attack) ended() bool {
	select {
	case <-a.done:
		return true
	default:
		return false
	}
}

// end waits for the call, or ends it where it waits for somebody.
func (a *attack) end() {
	if waiting[a.method.Name()] {
		a.cancel()
	}
	<-a.done
}

func (h *hostile) endAll() {
	for _, a := range h.running {
		a.end()
	}
}

func (h *hostile) run(a *attack) {
	defer close(a.done)
	defer a.cancel()
	ctx := metadata.AppendToOutgoingContext(a.ctx, "authorization", a.authorization(h.tokens))
	path := fmt.Sprintf("/%s/%s", a.method.Parent().FullName(), a.method.Name())
	stream, err := h.conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, path,
		grpc.ForceCodecV2(rawCodec{encoding.GetCodecV2("proto")}), grpc.MaxCallRecvMsgSize(64<<20))
	for i := 0; err == nil && i < len(a.payloads); i++ {
		err = stream.SendMsg(a.payloads[i])
	}
	if err == nil {
		err = stream.CloseSend()
	}
	kind, findErr := protoregistry.GlobalTypes.FindMessageByName(a.method.Output().FullName())
	if findErr != nil {
		h.fault(a, "%v", findErr)
		return
	}
	for stream != nil && (err == nil || errors.Is(err, io.EOF)) {
		answer := received{message: kind.New().Interface()}
		if err = stream.RecvMsg(&answer); err == nil {
			if bytes.Contains(answer.raw, []byte(secret)) {
				h.fault(a, "the answer shows what another tenant wrote: %.2000s", prototext.Format(answer.message))
			}
			h.requests.learn(answer.message)
		} else if errors.Is(err, io.EOF) {
			err = nil
			break
		}
	}
	h.judge(a, status.Convert(err))
}

// judge holds how a call ended to what the API promises.
func (h *hostile) judge(a *attack, st *status.Status) {
	h.mu.Lock()
	if h.outcomes[a.method.Name()] == nil {
		h.outcomes[a.method.Name()] = map[codes.Code]int{}
	}
	h.outcomes[a.method.Name()][st.Code()]++
	h.mu.Unlock()
	reason, _ := apierr.Reason(st)
	switch {
	case strings.Contains(st.String(), secret) || strings.Contains(fmt.Sprint(st.Details()...), secret):
		h.fault(a, "the error shows what another tenant wrote: %v", st)
	case a.forged && st.Code() != codes.Unauthenticated && a.ctx.Err() == nil: // else the client may have ended it first
		h.fault(a, "a forged token was answered with %v", st)
	case a.ctx.Err() != nil || st.Code() == codes.DeadlineExceeded && waiting[a.method.Name()]:
		// The client has ended it, or the server saw its deadline first; gRPC itself makes this error.
		if errors.Is(a.ctx.Err(), context.DeadlineExceeded) && !waiting[a.method.Name()] {
			h.fault(a, "the call did not end within %s", hostileTime)
		}
	case st.Code() == codes.OK:
	case st.Code() == codes.Internal || st.Code() == codes.Unknown || st.Code() == codes.DataLoss:
		h.fault(a, "%v", st)
	case reason == apierr.ReasonTransport && st.Code() == codes.InvalidArgument && !a.method.IsStreamingClient() && len(a.payloads) != 1:
		// Of one request there must be one.
	case !slices.ContainsFunc(st.Details(), isErrorInfo) || reason == "" || reason == apierr.ReasonTransport:
		h.fault(a, "the error has no reason: %v", st)
	case st.Message() == "":
		h.fault(a, "the error says nothing: %v", st)
	}
	if wrong := unfit(st); wrong != "" {
		h.fault(a, "%s: %q", wrong, st.Message())
	}
}

func isErrorInfo(detail any) bool {
	info, ok := detail.(*errdetails.ErrorInfo)
	return ok && info.GetDomain() == apierr.Domain
}

// fault reports a call with all that is needed to make it again.
func (h *hostile) fault(a *attack, format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.faults++; h.faults <= hostileFaults {
		h.t.Errorf("%s: %s\n%s", a.method.FullName(), fmt.Sprintf(format, args...), a)
	}
}

func (h *hostile) enough() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.faults >= hostileFaults
}

// owned is what the first tenant has, and the context of its session.
func (h *hostile) owned() string {
	h.t.Helper()
	kind := methods()["AssembleContext"]
	context, err := h.call(h.as(h.t.Context(), "first"), kind, []proto.Message{&contextdv1.AssembleContextRequest{SessionId: "mine", Preview: true}})
	check(h.t, err)
	if !strings.Contains(context, secret) {
		h.t.Errorf("the owner is not shown its own: %s", context)
	}
	return h.everything(h.t) + context
}

// deleteAll deletes every session of tenants.
func (h *hostile) deleteAll(tenants ...string) {
	h.t.Helper()
	for _, tenant := range tenants {
		ctx := h.as(h.t.Context(), tenant)
		for {
			page, err := h.api().ListSessions(ctx, &contextdv1.ListSessionsRequest{})
			check(h.t, err)
			for _, s := range page.GetSessions() {
				_, err := h.api().DeleteSession(ctx, &contextdv1.DeleteSessionRequest{SessionId: s.GetSessionId()})
				check(h.t, err)
			}
			if page.GetNextPageToken() == "" {
				break
			}
		}
	}
}

// report logs how calls ended. A method that never succeeded was not tried in earnest.
func (h *hostile) report() {
	// A task that somebody waits for, and a store on disk, which a tenant may not have copied.
	needsMore := map[string]bool{"CompleteSummaryTask": true, "Backup": true}
	for _, name := range slices.Sorted(maps.Keys(methods())) {
		of := h.outcomes[protoreflect.Name(name)]
		h.t.Logf("%-22s %v", name, of)
		if *hostileCalls >= 10_000 && (of[codes.OK] == 0 && !waiting[protoreflect.Name(name)] && !needsMore[name] || of[codes.InvalidArgument] == 0) {
			h.t.Errorf("%s was never accepted, or never refused: %v", name, of)
		}
	}
}

// heap is what is in use after a collection.
func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what had finalizers is free now
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// rawCodec sends bytes as they are, and keeps those of answers.
type rawCodec struct{ encoding.CodecV2 }

type received struct {
	message proto.Message
	raw     []byte
}

func (c rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	if b, ok := v.([]byte); ok {
		return mem.BufferSlice{mem.SliceBuffer(b)}, nil
	}
	return c.CodecV2.Marshal(v)
}

func (c rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	if r, ok := v.(*received); ok {
		r.raw = data.Materialize()
		return proto.Unmarshal(r.raw, r.message)
	}
	return c.CodecV2.Unmarshal(data, v)
}
