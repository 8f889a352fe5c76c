package main

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// unfinishedRequests announces a large message on each stream, and never sends all of it.
func unfinishedRequests(t *testing.T, p *process, size attackSize) { unfinished(t, p, size, 16<<10) }

// unfinishedInSmallFrames does the same in frames of a few bytes, each of which costs the daemon a buffer.
func unfinishedInSmallFrames(t *testing.T, p *process, size attackSize) {
	size.bytes = min(size.bytes, size.clients<<15)
	unfinished(t, p, size, 8)
}

func unfinished(t *testing.T, p *process, size attackSize, frame int) {
	const announced = 36 << 20
	body := make([]byte, 5+2*size.bytes)
	binary.BigEndian.PutUint32(body[1:], announced)
	at(size.clients, func(int) {
		r := p.dialRaw(t)
		if err := r.call(1, "/contextd.v1.ContextService/AppendEvents"); err != nil {
			return
		}
		r.send(1, body, frame)
	})
}

// slowReaders requests a large event again and again, and reads only a part of each answer.
func slowReaders(t *testing.T, p *process, size attackSize) {
	fill(t, p, "large", size.bytes, size.bytes)
	unread(t, p, size.clients, "/contextd.v1.ContextService/ReadEvents", &contextdv1.ReadEventsRequest{SessionId: "large"})
}

// slowContexts requests a large context again and again, and reads only a part of each answer.
func slowContexts(t *testing.T, p *process, size attackSize) {
	fill(t, p, "large", size.session, 64<<10)
	unread(t, p, size.clients, "/contextd.v1.ContextService/AssembleContext", &contextdv1.AssembleContextRequest{
		SessionId: "large", Budget: &contextdv1.Budget{MaxTokens: 900_000_000}, Preview: true,
	})
}

// unread sends a request on many connections and reads none of the answers.
func unread(t *testing.T, p *process, clients int, method string, req proto.Message) {
	t.Helper()
	body, err := proto.Marshal(req)
	if err != nil {
		t.Fatal(err)
	}
	framed := append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(body))), body...)
	at(clients, func(int) {
		r := p.dialRaw(t)
		if err := r.call(1, method); err != nil {
			return
		}
		r.send(1, framed, 16<<10)
		r.mu.Lock()
		_ = r.framer.WriteData(1, true, nil)
		r.mu.Unlock()
		<-r.answered // by then the daemon has prepared as much as it does for clients that wait
	})
}

// largeMetadata sends headers of the largest size that gRPC accepts.
func largeMetadata(t *testing.T, p *process, size attackSize) {
	big := words(60 << 10)
	big = strings.ReplaceAll(big, "\n", " ")
	at(4*size.clients, func(i int) {
		ctx := metadata.AppendToOutgoingContext(t.Context(), "x-large", big)
		stream, err := contextdv1.NewContextServiceClient(p.conn).AppendEventStream(ctx)
		if err == nil {
			_ = stream.Send(&contextdv1.AppendEventStreamRequest{Append: user(fmt.Sprintf("m%d", i), "x")})
		}
	})
}
