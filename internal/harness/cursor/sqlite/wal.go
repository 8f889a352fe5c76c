package sqlite

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
)

// writeAheadLog is where pages are that were changed and are not in the database yet.
type writeAheadLog struct {
	in io.ReaderAt
	at map[uint32]int64 // offsets by page
}

const (
	logHeader   = 32
	frameHeader = 24
	logMagic    = 0x377f0682 // one more where checksums are of big-endian words
)

// readLog reads up to the last transaction that is there whole. What is after it is the
// rest of older ones, or one that was not committed; a log that is not sound from its
// header on has none, as SQLite has it.
func readLog(in io.ReaderAt, pageSize int) (writeAheadLog, error) {
	log := writeAheadLog{in: in, at: map[uint32]int64{}}
	header := make([]byte, logHeader)
	if ok, err := readWhole(in, header, 0); !ok || err != nil {
		return log, err
	}
	magic := binary.BigEndian.Uint32(header)
	if magic&^1 != logMagic || binary.BigEndian.Uint32(header[8:]) != uint32(pageSize) {
		return log, nil
	}
	sum := checksum{order: binary.LittleEndian}
	if magic&1 == 1 {
		sum.order = binary.BigEndian
	}
	if sum.add(header[:24]); !sum.is(header[24:]) {
		return log, nil
	}
	pending := map[uint32]int64{}
	frame := make([]byte, frameHeader+pageSize)
	for at := int64(logHeader); ; at += int64(len(frame)) {
		if ok, err := readWhole(in, frame, at); !ok || err != nil {
			return log, err
		}
		sum.add(frame[:8])
		sum.add(frame[frameHeader:])
		if string(frame[8:16]) != string(header[16:24]) || !sum.is(frame[16:]) {
			return log, nil
		}
		pending[binary.BigEndian.Uint32(frame)] = at + frameHeader
		if commit := binary.BigEndian.Uint32(frame[4:]) > 0; commit {
			maps.Copy(log.at, pending)
			clear(pending)
		}
	}
}

func readWhole(in io.ReaderAt, into []byte, at int64) (bool, error) {
	if _, err := in.ReadAt(into, at); errors.Is(err, io.EOF) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("read write-ahead log: %w", err)
	}
	return true, nil
}

// checksum is the running one of a log.
type checksum struct {
	order  binary.ByteOrder
	first  uint32
	second uint32
}

func (c *checksum) add(words []byte) {
	for ; len(words) >= 8; words = words[8:] {
		c.first += c.order.Uint32(words) + c.second
		c.second += c.order.Uint32(words[4:]) + c.first
	}
}

func (c *checksum) is(stored []byte) bool {
	return c.first == binary.BigEndian.Uint32(stored) && c.second == binary.BigEndian.Uint32(stored[4:])
}
