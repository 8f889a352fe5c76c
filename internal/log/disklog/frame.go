package disklog

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"google.golang.org/protobuf/proto"

	eventlog "github.com/contextd/contextd/internal/log"
)

// Every value is framed: magic, letter, version, checksum, body.
const (
	frameMagic   = 'C'
	frameVersion = 1
	frameSize    = 7
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(key []byte, letter, version byte, body []byte) uint32 {
	sum := crc32.Update(0, castagnoli, key)
	sum = crc32.Update(sum, castagnoli, []byte{letter, version})
	return crc32.Update(sum, castagnoli, body)
}

// putFrame writes the frame of the body that is at value[frameSize:].
func putFrame(key []byte, letter byte, value []byte) {
	value[0], value[1], value[2] = frameMagic, letter, frameVersion
	binary.LittleEndian.PutUint32(value[3:], checksum(key, letter, frameVersion, value[frameSize:]))
}

// encode frames a message.
func encode(key []byte, letter byte, m proto.Message) ([]byte, error) {
	value, err := proto.MarshalOptions{Deterministic: true}.MarshalAppend(make([]byte, frameSize, 128), m)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", describeKey(key), err)
	}
	putFrame(key, letter, value)
	return value, nil
}

// unframe returns the body of a value: magic first, then version, then checksum.
func unframe(key []byte, letter byte, value []byte) ([]byte, error) {
	corrupt := func(reason string) error {
		return &eventlog.CorruptError{What: describeKey(key), Reason: reason}
	}
	switch {
	case len(value) < frameSize:
		return nil, corrupt("it is shorter than a frame")
	case value[0] != frameMagic || value[1] != letter:
		return nil, corrupt("it does not begin with the magic")
	case value[2] != frameVersion:
		return nil, corrupt(fmt.Sprintf("it has version %d, this program knows %d", value[2], frameVersion))
	case binary.LittleEndian.Uint32(value[3:]) != checksum(key, letter, value[2], value[frameSize:]):
		return nil, corrupt("its checksum does not match")
	}
	return value[frameSize:], nil
}

// decode fills m from a framed value. m does not refer to the value's bytes.
func decode(key []byte, letter byte, value []byte, m proto.Message) error {
	body, err := unframe(key, letter, value)
	if err != nil {
		return err
	}
	if err := proto.Unmarshal(body, m); err != nil {
		return &eventlog.CorruptError{What: describeKey(key), Reason: err.Error()}
	}
	return nil
}

// describeKey returns a text that says what a key is for. It shows ids, and no content.
func describeKey(key []byte) string {
	if len(key) == 0 {
		return "an empty key"
	}
	if key[0] == keySession {
		return fmt.Sprintf("session %q", key[1:])
	}
	segment := keySegmentID(key)
	if segment == 0 || len(key) < 10 {
		return fmt.Sprintf("key %x", key)
	}
	switch key[9] {
	case keyEvent:
		return fmt.Sprintf("event %d of segment %d", keySeq(key), segment)
	case keyReference:
		return fmt.Sprintf("reference to segment %d", segment)
	case keyArtifact:
		if n, ok := parseArtifactKey(key); ok {
			return fmt.Sprintf("artifact %s/%d/%s of segment %d", n.kind, n.seq, n.id, segment)
		}
	}
	return fmt.Sprintf("key %x of segment %d", key[9:], segment)
}
