package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// knowledge is what the clients know about the logs.
type knowledge struct {
	mu sync.Mutex
	// acked has the seq of every acknowledged event, by session and event_id.
	acked map[string]map[string]uint64
	// lost has the batches that were sent but not answered, by session.
	lost map[string][]*contextdv1.AppendEventsRequest
	*mixed
}

func newKnowledge() *knowledge {
	return &knowledge{acked: map[string]map[string]uint64{}, lost: map[string][]*contextdv1.AppendEventsRequest{}, mixed: newMixed()}
}

// clone returns a copy.
func (k *knowledge) clone() *knowledge {
	out := newKnowledge()
	for session, acked := range k.acked {
		out.acked[session] = maps.Clone(acked)
	}
	for session, lost := range k.lost {
		out.lost[session] = slices.Clone(lost)
	}
	return out
}

func (k *knowledge) acknowledged() int {
	n := 0
	for _, session := range k.acked {
		n += len(session)
	}
	return n
}

func (k *knowledge) ack(session string, resp *contextdv1.AppendEventsResponse) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.acked[session] == nil {
		k.acked[session] = map[string]uint64{}
	}
	for _, r := range resp.GetReceipts() {
		k.acked[session][r.GetEventId()] = r.GetSeq()
	}
}

func (k *knowledge) lose(requests ...*contextdv1.AppendEventsRequest) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, r := range requests {
		k.lost[r.GetSessionId()] = append(k.lost[r.GetSessionId()], r)
	}
}

// verify checks every session, then repeats the unanswered requests.
func (k *knowledge) verify(t *testing.T, client contextdv1.ContextServiceClient) {
	t.Helper()
	for session, acked := range k.acked {
		events := readAll(t, client, session)
		checkDense(t, session, events)
		for id, seq := range acked {
			if seq == 0 || seq > uint64(len(events)) || events[seq-1].GetEventId() != id {
				t.Fatalf("%s: %s was acknowledged as event %d and is not there", session, id, seq)
			}
		}
	}
	for session, requests := range k.lost {
		for _, r := range requests {
			resp, err := client.AppendEvents(t.Context(), r)
			if err != nil {
				t.Fatalf("%s: repeating a lost append: %v", session, err)
			}
			first := resp.GetReceipts()[0].GetDuplicate()
			for i, receipt := range resp.GetReceipts() {
				if receipt.GetDuplicate() != first {
					t.Fatalf("%s: half of a batch was stored: event %d of %v", session, i, resp.GetReceipts())
				}
			}
			k.ack(session, resp)
		}
	}
	clear(k.lost)
	k.mixed.verify(t, client)
}

func readAll(t *testing.T, client contextdv1.ContextServiceClient, session string) []*contextdv1.Event {
	t.Helper()
	stream, err := client.ReadEvents(t.Context(), &contextdv1.ReadEventsRequest{SessionId: session})
	if err != nil {
		t.Fatal(err)
	}
	var out []*contextdv1.Event
	for {
		resp, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatalf("read %s: %v", session, err)
		}
		out = append(out, resp.GetEvents()...)
	}
}

// checkDense fails for gaps, incomplete batches, and events that differ from what was sent.
func checkDense(t *testing.T, session string, events []*contextdv1.Event) {
	t.Helper()
	for i, e := range events {
		if e.GetSeq() != uint64(i+1) {
			t.Fatalf("%s: event %d is at %d", session, e.GetSeq(), i+1)
		}
	}
	// Compactions are between batches.
	events = slices.DeleteFunc(slices.Clone(events), func(e *contextdv1.Event) bool { return e.GetCompaction() != nil })
	for i, e := range events {
		batch, place, of := parseID(t, e.GetEventId())
		if got := e.GetMessage().GetBlocks()[0].GetText().GetText(); got != content(e.GetEventId()) {
			t.Fatalf("%s: %s is not what was sent", session, e.GetEventId())
		}
		// The events of a batch must be consecutive.
		if place > 0 {
			before, at, _ := parseID(t, events[max(i-1, 0)].GetEventId())
			if i == 0 || before != batch || at != place-1 {
				t.Fatalf("%s: %s comes after another batch", session, e.GetEventId())
			}
		}
		if place < of-1 && i == len(events)-1 {
			t.Fatalf("%s: the log ends within batch %s", session, batch)
		}
	}
}

func eventID(batch string, place, of int) string { return fmt.Sprintf("%s/%d/%d", batch, place, of) }

func parseID(t *testing.T, id string) (batch string, place, of int) {
	t.Helper()
	parts := strings.Split(id, "/")
	if len(parts) != 3 {
		t.Fatalf("%s is nobody's event_id", id)
	}
	if _, err := fmt.Sscan(parts[1], &place); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscan(parts[2], &of); err != nil {
		t.Fatal(err)
	}
	return parts[0], place, of
}

// content is the text of an event, derived from its id; sizes vary.
func content(id string) string {
	sum := sha256.Sum256([]byte(id))
	repeat := 1 + int(sum[0])
	if sum[1] == 0 {
		repeat *= 64
	}
	return strings.Repeat(hex.EncodeToString(sum[:8])+" ", repeat)
}

// killWriter appends batches until the daemon is gone.
type killWriter struct {
	client        contextdv1.ContextServiceClient
	know          *knowledge
	acked         func()
	session, name string
	rng           *rand.Rand
	batches       int
}

func (w *killWriter) next() *contextdv1.AppendEventsRequest {
	w.batches++
	batch := fmt.Sprintf("%s-b%d", w.name, w.batches)
	of := 1 + w.rng.IntN(5)
	req := &contextdv1.AppendEventsRequest{SessionId: w.session}
	for place := range of {
		id := eventID(batch, place, of)
		event := said(content(id))
		event.EventId = id
		if place%2 == 1 {
			event.GetMessage().Role = contextdv1.Role_ROLE_ASSISTANT
		}
		req.Events = append(req.Events, event)
	}
	return req
}

func (w *killWriter) unary(t *testing.T) {
	for {
		req := w.next()
		resp, err := w.client.AppendEvents(context.Background(), req)
		if err != nil {
			w.know.lose(req)
			expectGone(t, err)
			return
		}
		w.know.ack(w.session, resp)
		w.acked()
	}
}

// stream keeps several appends in flight.
func (w *killWriter) stream(t *testing.T) {
	stream, err := w.client.AppendEventStream(context.Background())
	if err != nil {
		expectGone(t, err)
		return
	}
	sent := make(chan *contextdv1.AppendEventsRequest, 32)
	broken := make(chan struct{})
	var sender sync.WaitGroup
	sender.Go(func() {
		defer close(sent)
		for {
			req := w.next()
			select {
			case sent <- req:
			case <-broken:
				return
			}
			if stream.Send(&contextdv1.AppendEventStreamRequest{Append: req}) != nil {
				return
			}
		}
	})
	for {
		resp, err := stream.Recv()
		if err != nil {
			expectGone(t, err)
			break
		}
		<-sent
		w.know.ack(w.session, resp.GetAppended())
		w.acked()
	}
	close(broken)
	for req := range sent {
		w.know.lose(req)
	}
	sender.Wait()
}

// expectGone fails for any error other than that the daemon is gone.
func expectGone(t *testing.T, err error) {
	if status.Code(err) != codes.Unavailable {
		t.Errorf("a writer got %v", err)
	}
}
