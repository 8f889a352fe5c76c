package server_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	eventlog "github.com/contextd/contextd/internal/log"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// longSession is a run of tool calls with results of some size.
func longSession(calls, size int) []*contextdv1.Event {
	events := conversation()[:2]
	for i := range calls {
		id := fmt.Sprintf("call-%d", i)
		events = append(events,
			message(contextdv1.Role_ROLE_ASSISTANT, call(id, "read_file", fmt.Sprintf(`{"path":"src/file_%d.go"}`, i))),
			message(contextdv1.Role_ROLE_TOOL, result(id, text(strings.Repeat(fmt.Sprintf("line %d of the file\n", i), size)))))
	}
	return events
}

func tight() *contextdv1.Budget {
	return &contextdv1.Budget{MaxTokens: 6000, SafetyMargin: proto.Float64(0)}
}

func TestReducedContext(t *testing.T) {
	eachStore(t, func(t *testing.T, open func(t *testing.T) eventlog.Store) {
		a := serve(t, open(t))
		a.append(t, "s", longSession(40, 100)...)
		got, err := a.assemble(t, &contextdv1.AssembleContextRequest{SessionId: "s", Budget: tight(), Policy: &contextdv1.Policy{Name: "frugal"}})
		if err != nil {
			t.Fatal(err)
		}
		h := got.header
		if hash := hashOf(got.messages); hash != h.GetPrefixHash() || int(h.GetMessageCount()) != len(got.messages) {
			t.Errorf("%d messages hash to %s; the header says %d and %s", len(got.messages), hash, h.GetMessageCount(), h.GetPrefixHash())
		}
		if b := h.GetBudget(); b.GetProjectedTokens() > b.GetTargetTokens() || b.GetRawTokens() <= b.GetTargetTokens() {
			t.Errorf("budget is %v", b)
		}
		for i, m := range got.messages {
			if int(m.GetIndex()) != i || m.GetMessage() != nil || m.GetOrigin() == 0 {
				t.Errorf("message %d is %v", i, m)
			}
		}
		pointers := h.GetProjection().GetRedactionPointers()
		if len(pointers) == 0 {
			t.Error("nothing was stubbed")
		}
		for _, p := range pointers {
			resolved, err := a.ResolvePointer(t.Context(), &contextdv1.ResolvePointerRequest{SessionId: "s", Pointer: p.GetPointer()})
			if err != nil {
				t.Fatal(err)
			}
			if resolved.GetEvent().GetSeq() != p.GetSourceSeq() || resolved.GetBlock().GetToolResult().GetCallId() != p.GetCallId() {
				t.Errorf("%s gives event %d", p.GetPointer(), resolved.GetEvent().GetSeq())
			}
		}
		replay, err := a.ReplayProjection(t.Context(), &contextdv1.ReplayProjectionRequest{SessionId: "s", ProjectionId: h.GetProjectionId()})
		if err != nil || !replay.GetSame() || replay.GetReplayed().GetPrefixHash() != h.GetPrefixHash() {
			t.Errorf("replayed: %v, %v", replay.GetDifference(), err)
		}
	})
}

func TestInjectionsComeLast(t *testing.T) {
	a := serve(t, stores["memory"](t))
	a.append(t, "s", conversation()...)
	plain, err := a.assemble(t, &contextdv1.AssembleContextRequest{SessionId: "s"})
	if err != nil {
		t.Fatal(err)
	}
	got, err := a.assemble(t, &contextdv1.AssembleContextRequest{
		SessionId:  "s",
		Injections: []*contextdv1.Injection{{Name: "now", Blocks: []*contextdv1.Block{text("It is noon.")}, ReserveTokens: 50}},
	})
	if err != nil {
		t.Fatal(err)
	}
	last := len(got.messages) - 1
	if got.messages[last].GetOrigin() != contextdv1.Origin_ORIGIN_INJECTION {
		t.Errorf("the last message is %v", got.messages[last])
	}
	if got.header.GetPrefixHash() != plain.header.GetPrefixHash() || hashOf(got.messages[:last]) != plain.header.GetPrefixHash() {
		t.Error("an injection changed the prefix")
	}
	if got.header.GetContextHash() != hashOf(got.messages) || got.trailer.GetContextHash() != hashOf(got.messages) {
		t.Error("the context hash does not take the injection in")
	}
}

func TestHaveIsCompared(t *testing.T) {
	a := serve(t, stores["memory"](t))
	a.append(t, "s", conversation()...)
	first, err := a.assemble(t, &contextdv1.AssembleContextRequest{SessionId: "s"})
	if err != nil {
		t.Fatal(err)
	}
	a.append(t, "s", user("And now?"))
	hash := first.header.GetPrefixHash()
	tests := map[string]struct {
		have *contextdv1.Have
		skip int
	}{
		"what it has":     {&contextdv1.Have{MessageCount: 4, PrefixHash: hash}, 4},
		"something else":  {&contextdv1.Have{MessageCount: 3, PrefixHash: hash}, 0},
		"more than it is": {&contextdv1.Have{MessageCount: 40, PrefixHash: hash}, 0},
		"nothing":         {&contextdv1.Have{}, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := a.assemble(t, &contextdv1.AssembleContextRequest{SessionId: "s", Have: test.have, Preview: true})
			if err != nil {
				t.Fatal(err)
			}
			if int(got.header.GetSkippedMessages()) != test.skip || len(got.messages) != 5-test.skip {
				t.Fatalf("skipped %d and sent %d", got.header.GetSkippedMessages(), len(got.messages))
			}
			if int(got.messages[0].GetIndex()) != test.skip {
				t.Errorf("the first message sent is number %d", got.messages[0].GetIndex())
			}
		})
	}
}

func TestContextChunks(t *testing.T) {
	a := serve(t, stores["memory"](t))
	a.append(t, "s", append(longSession(60, 20), user(strings.Repeat("long ", 20_000)))...)
	stream, err := a.AssembleContext(t.Context(), &contextdv1.AssembleContextRequest{SessionId: "s", Budget: &contextdv1.Budget{MaxTokens: 1_000_000}})
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	alone := false
	parts, err := received(stream.Recv)
	if err != nil {
		t.Fatal(err)
	}
	for _, resp := range parts {
		switch part := resp.GetPart().(type) {
		case *contextdv1.AssembleContextResponse_Header:
			order = append(order, "header")
		case *contextdv1.AssembleContextResponse_Chunk:
			if size := proto.Size(part.Chunk); size > 31<<10 {
				alone = len(part.Chunk.GetMessages()) == 1
				if !alone {
					t.Errorf("a chunk of %d bytes holds %d messages", size, len(part.Chunk.GetMessages()))
				}
			}
			if order[len(order)-1] != "chunks" {
				order = append(order, "chunks")
			}
		case *contextdv1.AssembleContextResponse_Trailer:
			order = append(order, "trailer")
		}
	}
	if got := strings.Join(order, " "); got != "header chunks trailer" || !alone {
		t.Errorf("parts came as %s; the long message alone: %t", got, alone)
	}
}

// TestProjectIsAssemble compares the context of a log with that of its events.
func TestProjectIsAssemble(t *testing.T) {
	a := serve(t, stores["memory"](t))
	a.append(t, "s", longSession(40, 100)...)
	want, err := a.assemble(t, &contextdv1.AssembleContextRequest{SessionId: "s", Budget: tight(), Preview: true})
	if err != nil {
		t.Fatal(err)
	}
	for name, events := range map[string][]*contextdv1.Event{"as appended": a.read(t, "s"), "without ids and times": longSession(40, 100)} {
		t.Run(name, func(t *testing.T) { a.projectsTo(t, events, want.header.GetPrefixHash()) })
	}
}

func (a *api) projectsTo(t *testing.T, events []*contextdv1.Event, want string) {
	t.Helper()
	stream, err := a.ProjectTranscript(t.Context(), &contextdv1.ProjectTranscriptRequest{Events: events, Budget: tight()})
	if err != nil {
		t.Fatal(err)
	}
	var messages []*contextdv1.RenderedMessage
	var header *contextdv1.ContextHeader
	parts, err := received(stream.Recv)
	if err != nil {
		t.Fatal(err)
	}
	for _, resp := range parts {
		messages = append(messages, resp.GetChunk().GetMessages()...)
		if resp.GetHeader() != nil {
			header = resp.GetHeader()
		}
	}
	if header.GetPrefixHash() != want || hashOf(messages) != want {
		t.Errorf("projected %s, assembled %s", header.GetPrefixHash(), want)
	}
	if header.GetProjectionId() != "" || header.GetSessionId() != "" {
		t.Errorf("a projection of no session was recorded: %v", header)
	}
}

func TestOverBudgetSaysWhy(t *testing.T) {
	a := serve(t, stores["memory"](t))
	pinned := user(strings.Repeat("important ", 400))
	pinned.GetMessage().Pinned = true
	a.append(t, "s", conversation()[0], pinned)
	_, err := a.assemble(t, &contextdv1.AssembleContextRequest{SessionId: "s", Budget: &contextdv1.Budget{MaxTokens: 200}})
	st := status.Convert(err)
	if st.Code() != codes.FailedPrecondition {
		t.Fatal(err)
	}
	for _, detail := range st.Details() {
		over, ok := detail.(*contextdv1.BudgetExceeded)
		if !ok {
			continue
		}
		if over.GetNeededTokens() <= over.GetTargetTokens() || len(over.GetParts()) == 0 || over.GetParts()[0].GetSeq() != 2 {
			t.Errorf("detail is %v; want the pinned message first", over)
		}
		return
	}
	t.Errorf("no BudgetExceeded among %v", st.Details())
}

func TestListProjections(t *testing.T) {
	a := serve(t, stores["memory"](t))
	for i := range 5 {
		a.append(t, "s", user(fmt.Sprint(i)))
		if _, err := a.assemble(t, &contextdv1.AssembleContextRequest{SessionId: "s"}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := a.assemble(t, &contextdv1.AssembleContextRequest{SessionId: "s", Preview: true}); err != nil {
		t.Fatal(err)
	}
	req := &contextdv1.ListProjectionsRequest{SessionId: "s", PageSize: 2}
	seen := map[uint64]int{}
	for {
		page, err := a.ListProjections(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range page.GetProjections() {
			seen[p.GetAsOfSeq()]++
		}
		if req.PageToken = page.GetNextPageToken(); req.GetPageToken() == "" {
			break
		}
	}
	if len(seen) != 5 {
		t.Errorf("recorded at %v; want each of the 5 events once", seen)
	}
	for seq, n := range seen {
		if n != 1 {
			t.Errorf("event %d has %d projections", seq, n)
		}
	}
}

// A brief list has all but what grows with the log, and says how much that is.
func TestListProjectionsBriefly(t *testing.T) {
	a := serve(t, stores["memory"](t))
	a.append(t, "s", conversation()...)
	for _, tokens := range []uint64{9000, 600} {
		if _, err := a.assemble(t, &contextdv1.AssembleContextRequest{SessionId: "s", Budget: &contextdv1.Budget{MaxTokens: tokens}}); err != nil {
			t.Fatal(err)
		}
	}
	whole, err := a.ListProjections(t.Context(), &contextdv1.ListProjectionsRequest{SessionId: "s"})
	if err != nil {
		t.Fatal(err)
	}
	brief, err := a.ListProjections(t.Context(), &contextdv1.ListProjectionsRequest{SessionId: "s", Brief: true})
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range whole.GetProjections() {
		if n := p.GetKeptCount() + p.GetDroppedCount(); n == 0 || p.GetBudget().GetProjectedTokens() == 0 || len(p.GetBudget().GetTierTokens()) == 0 || p.GetMessageCount() == 0 {
			t.Errorf("%d events, %v, %d messages", n, p.GetBudget(), p.GetMessageCount())
		}
		p.KeptSeqs, p.DroppedSeqs, p.RedactedSeqs, p.RedactionPointers = nil, nil, nil, nil
		if diff := cmp.Diff(p, brief.GetProjections()[i], protocmp.Transform()); diff != "" {
			t.Error(diff)
		}
	}
}

// Contexts of a long log name thousands of events each: pages end before 1 MiB, whatever
// was asked for, and together they hold every projection once.
func TestListProjectionsPageBytes(t *testing.T) {
	a := serve(t, stores["memory"](t))
	const lines, contexts = 4000, 160
	all := make([]*contextdv1.Event, lines)
	for i := range all {
		all[i] = user(fmt.Sprint(i))
	}
	for part := range slices.Chunk(all, 1000) {
		a.append(t, "s", part...)
	}
	for range contexts {
		if _, err := a.assemble(t, &contextdv1.AssembleContextRequest{SessionId: "s", Brief: true}); err != nil {
			t.Fatal(err)
		}
	}
	req := &contextdv1.ListProjectionsRequest{SessionId: "s", PageSize: 1000}
	var ids []string
	pages := 0
	for ; pages == 0 || req.GetPageToken() != ""; pages++ {
		page, err := a.ListProjections(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		if n := proto.Size(page); n >= 1<<20 {
			t.Errorf("page %d has %d bytes", pages, n)
		}
		for _, p := range page.GetProjections() {
			ids = append(ids, p.GetProjectionId())
		}
		req.PageToken = page.GetNextPageToken()
	}
	if len(ids) != contexts || len(slices.Compact(ids)) != contexts || pages < 2 {
		t.Errorf("%d pages hold %d projections, want %d", pages, len(ids), contexts)
	}
}

func TestCountTokens(t *testing.T) {
	a := serve(t, stores["memory"](t))
	tests := map[string]struct {
		req       *contextdv1.CountTokensRequest
		tokens    uint64
		tokenizer string
		exact     bool
	}{
		"nothing":      {&contextdv1.CountTokensRequest{}, 0, "o200k_base", true},
		"by default":   {&contextdv1.CountTokensRequest{Text: "hello world"}, 2, "o200k_base", true},
		"by tokenizer": {&contextdv1.CountTokensRequest{Text: "hello world", Tokenizer: "cl100k_base"}, 2, "cl100k_base", true},
		"by model":     {&contextdv1.CountTokensRequest{Text: "hello world", Model: "gpt-4o"}, 2, "o200k_base", true},
		"a message":    {&contextdv1.CountTokensRequest{Message: user("hello world").GetMessage()}, 6, "o200k_base", true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := a.CountTokens(t.Context(), test.req)
			if err != nil {
				t.Fatal(err)
			}
			if got.GetTokens() != test.tokens || got.GetTokenizer() != test.tokenizer || got.GetExact() != test.exact {
				t.Errorf("counted %v", got)
			}
		})
	}
	estimate, err := a.CountTokens(t.Context(), &contextdv1.CountTokensRequest{Text: "hello world", Model: "claude-sonnet-4-5"})
	if err != nil || estimate.GetExact() || estimate.GetTokenizer() != "heuristic" || estimate.GetTokens() == 0 {
		t.Errorf("estimated %v, %v", estimate, err)
	}
}

func TestStoreClosesUnderAServer(t *testing.T) {
	var store eventlog.Store = unclosed{stores["memory"](t)}
	a := serve(t, store)
	a.append(t, "s", user("x"))
	if err := store.(unclosed).Store.Close(); err != nil {
		t.Fatal(err)
	}
	if err := try("s", user("y"))(t, a); status.Code(err) != codes.Unavailable {
		t.Errorf("got %v", err)
	}
}
