package transport

import (
	"bytes"
	"compress/gzip"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"buf.build/go/protovalidate"
	"google.golang.org/grpc/mem"

	"github.com/contextd/contextd/internal/fair"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// packedStream is a call whose messages are compressed.
type packedStream struct{ rawStream }

func (packedStream) RecvCompress() string { return "gzip" }

// Unpacking takes what a message is large, which is what was set aside for it.
func TestUnpackingTakesWhatItIsLarge(t *testing.T) {
	const size = 24 << 20
	for what, c := range map[string]struct{ size, most, takes uint64 }{
		"a large message": {size, size, size + size/8},
		"one too large":   {2 * size, size, size / 8},
	} {
		packed := packedXs(t, int(c.size))
		s := &boundedStream{raw: packedStream{}, bounds: &bounds{maxMessage: c.most}}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		data, err := s.unpack(mem.BufferSlice{packed}, nil)
		if err == nil {
			flat := data.MaterializeToBuffer(mem.DefaultBufferPool()) // as decoding does
			if !bytes.Equal(flat.ReadOnlyData(), bytes.Repeat([]byte("x"), int(c.size))) {
				t.Errorf("%s: it is another", what)
			}
			flat.Free()
		}
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; (err == nil) != (c.size <= c.most) || err == nil && took > c.takes+c.size || err != nil && took > c.takes {
			t.Errorf("%s: %v, with %d bytes", what, err, took)
		}
	}
}

// packedXs is so many of a letter, compressed.
func packedXs(t *testing.T, size int) mem.SliceBuffer {
	t.Helper()
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(bytes.Repeat([]byte("x"), size)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

// While others have the turns of the processor, a large request is neither decompressed nor decoded nor checked. A
// small one waits for nobody.
func TestLargeRequestsTakeTurns(t *testing.T) {
	turns := fair.NewTurns(fair.TurnsOptions{Limit: 1, PerClient: 2, Setting: "max_assemblies", Wait: time.Nanosecond, Clock: time.Now})
	for range 2 { // the second because turns are short until they have lasted
		done, err := turns.Take(fair.WithClient(t.Context(), "other"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(done)
	}
	validator, err := protovalidate.New()
	if err != nil {
		t.Fatal(err)
	}
	b := &bounds{Bounds: Bounds{Processor: turns}, maxMessage: 1 << 20, codec: newCodec()}
	for size, refused := range map[int]bool{largeMessage: false, 2 * largeMessage: true} {
		for _, exempt := range []bool{false, true} {
			s := &boundedStream{raw: packedStream{}, bounds: b, ctx: t.Context(), exempt: exempt}
			_, err := s.unpack(mem.BufferSlice{packedXs(t, size)}, nil)
			if busy := errors.As(err, new(*fair.BusyError)); busy != (refused && !exempt) || (err != nil) != refused {
				t.Errorf("unpacking %d bytes, exempt %t: %v", size, exempt, err)
			}
		}
		request := &contextdv1.CountTokensRequest{Text: strings.Repeat("x", size-8)}
		for what, err := range map[string]error{
			"decoding": (&boundedStream{bounds: b, ctx: t.Context()}).decode(encoded(t, request), &contextdv1.CountTokensRequest{}),
			"checking": validation{validator, turns}.check(t.Context(), request),
		} {
			if busy := errors.As(err, new(*fair.BusyError)); busy != refused || err != nil && !busy {
				t.Errorf("%s %d bytes: %v", what, size, err)
			}
		}
	}
}

func encoded(t *testing.T, m *contextdv1.CountTokensRequest) mem.BufferSlice {
	t.Helper()
	data, err := newCodec().Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
