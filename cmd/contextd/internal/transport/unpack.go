package transport

import (
	"errors"
	"io"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"

	"github.com/contextd/contextd/cmd/contextd/internal/apierr"
	"github.com/contextd/contextd/internal/fair"
	"github.com/contextd/contextd/internal/memory"
)

// keep reduces the memory of an unpacked request to its size. A small request takes it from the budget of small ones.
func (s *boundedStream) keep(grant *memory.Grant, size uint64) error {
	if size > largeMessage {
		grant.Keep(size)
		return nil
	}
	_, err := s.take(size) // of the budget for small ones
	return err
}

// gzipRatio exceeds gzip's greatest compression ratio, which is 1032.
const gzipRatio = 1 << 11

// unpackedAtMost returns an upper bound for the size that a compressed message has once it is unpacked.
func (s *boundedStream) unpackedAtMost(size uint64) uint64 {
	if s.raw.RecvCompress() == gzip.Name {
		return min(size*gzipRatio, s.bounds.maxMessage)
	}
	return s.bounds.maxMessage
}

// unpack decompresses a message up to the largest size that is allowed. It does so twice, first only to count the bytes:
// so it takes exactly the memory that the message needs, and none for one that is too large. A message that turns out to
// be large takes a processor turn.
func (s *boundedStream) unpack(packed mem.BufferSlice, grant *memory.Grant) (mem.BufferSlice, error) {
	most := s.bounds.maxMessage
	if s.exempt {
		most = largeMessage
	}
	turn := fair.Of(s.bounds.Processor)
	defer turn.End()
	var size int64
	var noTurn error
	err := s.unpackWith(packed, func(r io.Reader) (err error) {
		if size, err = io.CopyN(io.Discard, r, largeMessage+1); err != nil {
			return ignoreEOF(err)
		}
		if s.exempt {
			return nil
		}
		noTurn = turn.Begin(s.ctx)
		if noTurn != nil {
			return noTurn
		}
		more, err := io.CopyN(io.Discard, r, int64(most)-largeMessage)
		size += more
		return ignoreEOF(err)
	})
	switch n := uint64(size); {
	case noTurn != nil:
		return nil, noTurn
	case err != nil:
		return nil, err
	case n > most && s.exempt:
		return nil, errExemptIsLarge
	case n > most:
		return nil, &apierr.LimitError{Setting: "max_batch_bytes", Limit: s.bounds.maxContent, Actual: n, Unit: "bytes of a decompressed request"}
	}
	if err := s.keep(grant, uint64(size)); err != nil {
		return nil, err
	}
	whole := make([]byte, size)
	err = s.unpackWith(packed, func(r io.Reader) error {
		if _, err := io.ReadFull(r, whole); err != nil {
			return err
		}
		_, err := io.Copy(io.Discard, r) // at its end gRPC takes the decompressor back
		return err
	})
	if err != nil {
		return nil, err
	}
	return mem.BufferSlice{mem.SliceBuffer(whole)}, nil
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// unpackWith calls read with the decompressed message, from its beginning.
func (s *boundedStream) unpackWith(packed mem.BufferSlice, read func(io.Reader) error) error {
	c := encoding.GetCompressor(s.raw.RecvCompress())
	if c == nil {
		return status.Error(codes.InvalidArgument, "a compressed message came without its grpc-encoding")
	}
	in := packed.Reader()
	defer in.Close()
	r, err := c.Decompress(in)
	if err == nil {
		err = read(&untilEnd{Reader: r})
	}
	if err != nil {
		return status.Error(codes.InvalidArgument, "the message could not be decompressed")
	}
	return nil
}

// untilEnd does not read a reader again after its end: gRPC then uses it for other messages.
type untilEnd struct {
	io.Reader
	err error
}

func (u *untilEnd) Read(p []byte) (n int, err error) {
	if u.err == nil {
		n, u.err = u.Reader.Read(p)
	}
	return n, u.err
}
