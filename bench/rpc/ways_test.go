package rpc_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// texts are the texts to append, in turn.
type texts []string

// recorded is a session of an agent over source code: calls, results, prose.
const recorded = "../../cmd/contextd/internal/demo/session.jsonl"

// newTexts cuts a recorded session into texts of a size.
func newTexts(b *testing.B, size int) texts {
	b.Helper()
	data, err := os.ReadFile(recorded)
	if err != nil {
		b.Fatal(err)
	}
	out := make(texts, 128)
	for i := range out {
		at := i * (len(data) - size) / len(out)
		out[i] = strings.ToValidUTF8(string(data[at:at+size]), "?")
	}
	return out
}

func (t texts) request(writer, n int) *contextdv1.AppendEventsRequest {
	return &contextdv1.AppendEventsRequest{
		SessionId: fmt.Sprintf("session-%d", writer),
		Events: []*contextdv1.Event{{
			EventId: fmt.Sprintf("0199aaaa-bbbb-7ccc-8ddd-%012d", n),
			Kind: &contextdv1.Event_Message{Message: &contextdv1.Message{
				Role:   contextdv1.Role_ROLE_USER,
				Blocks: []*contextdv1.Block{{Kind: &contextdv1.Block_Text{Text: &contextdv1.Text{Text: t[n%len(t)]}}}},
			}},
		}},
	}
}

// pebble is the lowest possible cost of a durable append: one key per event, without index, chain and checks,
// in the same process.
func (t texts) pebble(db *pebble.DB) appendAll {
	return func(writer int, next func() (int, bool), took func(time.Duration)) error {
		for {
			n, ok := next()
			if !ok {
				return nil
			}
			began := time.Now()
			key := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64([]byte{'e'}, uint64(writer)), uint64(n))
			batch := db.NewBatch()
			if err := batch.Set(key, []byte(t[n%len(t)]), nil); err != nil {
				return err
			}
			if err := batch.Commit(pebble.Sync); err != nil {
				return err
			}
			took(time.Since(began))
		}
	}
}

func openPebble(b *testing.B) *pebble.DB {
	o := &pebble.Options{FormatMajorVersion: pebble.FormatNewest, MemTableSize: 16 << 20, CacheSize: 16 << 20, Logger: quiet{}}
	o.Experimental.ValueSeparationPolicy = func() pebble.ValueSeparationPolicy {
		return pebble.ValueSeparationPolicy{Enabled: true, MinimumSize: 512, MaxBlobReferenceDepth: 100, TargetGarbageRatio: 0.2}
	}
	db, err := pebble.Open(b.TempDir(), o)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := db.Close(); err != nil {
			b.Error(err)
		}
	})
	return db
}

type quiet struct{}

func (quiet) Infof(string, ...any)  {}
func (quiet) Errorf(string, ...any) {}
func (quiet) Fatalf(format string, args ...any) {
	panic(fmt.Sprintf(format, args...))
}

// unary waits for every append before it sends the next.
func (t texts) unary(d *process) appendAll {
	return func(writer int, next func() (int, bool), took func(time.Duration)) error {
		client := contextdv1.NewContextServiceClient(d.conn(writer))
		for {
			n, ok := next()
			if !ok {
				return nil
			}
			began := time.Now()
			if _, err := client.AppendEvents(context.Background(), t.request(writer, n)); err != nil {
				return err
			}
			took(time.Since(began))
		}
	}
}

// stream keeps several appends of a writer in flight.
func (t texts) stream(d *process) appendAll {
	return func(writer int, next func() (int, bool), took func(time.Duration)) error {
		s, err := contextdv1.NewContextServiceClient(d.conn(writer)).AppendEventStream(context.Background())
		if err != nil {
			return err
		}
		began := make(chan time.Time, inFlight)
		sent := make(chan error, 1)
		go func() {
			defer close(began)
			for {
				n, ok := next()
				if !ok {
					sent <- s.CloseSend()
					return
				}
				began <- time.Now()
				if err := s.Send(&contextdv1.AppendEventStreamRequest{Append: t.request(writer, n)}); err != nil {
					sent <- err
					return
				}
			}
		}()
		for at := range began {
			if _, err := s.Recv(); err != nil {
				return err
			}
			took(time.Since(at))
		}
		return <-sent
	}
}

// assembled is the session whose contexts are assembled while the writers append.
const assembled = "session-assembled"

// assembleOn assembles contexts of a session of 64 events until it is stopped.
func (p *process) assembleOn(b *testing.B) (stop func() error) {
	texts := newTexts(b, 1<<10)
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.Context()))
	client := contextdv1.NewContextServiceClient(p.conn(1))
	stopped := make(chan error, 1)
	go func() {
		err := p.makeAssembled(ctx, texts)
		for err == nil && ctx.Err() == nil {
			err = assembleOnce(ctx, client)
		}
		if ctx.Err() != nil {
			err = nil
		}
		stopped <- err
	}()
	return func() error {
		cancel()
		return <-stopped
	}
}

func (p *process) makeAssembled(ctx context.Context, t texts) error {
	all := &contextdv1.AppendEventsRequest{SessionId: assembled}
	for n := range 64 {
		all.Events = append(all.Events, t.request(0, n).Events...)
	}
	_, err := contextdv1.NewContextServiceClient(p.conn(0)).AppendEvents(ctx, all)
	return err
}

func assembleOnce(ctx context.Context, client contextdv1.ContextServiceClient) error {
	stream, err := client.AssembleContext(ctx, &contextdv1.AssembleContextRequest{
		SessionId: assembled, Budget: &contextdv1.Budget{MaxTokens: 16_000}, Brief: true,
	})
	for err == nil {
		_, err = stream.Recv()
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
