package transport

import (
	"bytes"
	"compress/gzip"
	"runtime"
	"testing"

	"google.golang.org/grpc/mem"
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
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		if _, err := w.Write(bytes.Repeat([]byte("x"), int(c.size))); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		s := &boundedStream{raw: packedStream{}, bounds: &bounds{maxMessage: c.most}}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		data, err := s.unpack(mem.BufferSlice{mem.SliceBuffer(packed.Bytes())}, nil)
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
