package disklog

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"slices"

	eventlog "github.com/contextd/contextd/internal/log"
)

// The letters of the keys; see FORMAT.md.
const (
	keySession  = 's'
	keySegment  = 'g'
	keyDeletion = 'd'
	keyNudge    = 'x'

	keyEvent     = 'e'
	keyIndex     = 'i'
	keyArtifact  = 'a'
	keyPuts      = 'p'
	keyReference = 'r'
)

// segmentID numbers a segment. 0 is none.
type segmentID uint64

func sessionKey(id string) []byte { return append([]byte{keySession}, id...) }

func deletionKey(s segmentID) []byte {
	return binary.BigEndian.AppendUint64([]byte{keyDeletion}, uint64(s))
}

// deletionSegment returns the own segment of the deleted session that a deletion's key names.
func deletionSegment(key []byte) segmentID {
	if len(key) != 9 {
		return 0
	}
	return segmentID(binary.BigEndian.Uint64(key[1:]))
}

// segmentPrefix begins every key of a segment.
func segmentPrefix(s segmentID) []byte {
	k := make([]byte, 0, 32)
	return binary.BigEndian.AppendUint64(append(k, keySegment), uint64(s))
}

func segmentSpan(s segmentID) (lower, upper []byte) {
	lower = segmentPrefix(s)
	return lower, prefixEnd(lower)
}

func kindPrefix(s segmentID, letter byte) []byte { return append(segmentPrefix(s), letter) }

func appendKindPrefix(k []byte, s segmentID, letter byte) []byte {
	return append(binary.BigEndian.AppendUint64(append(k, keySegment), uint64(s)), letter)
}

func eventKey(s segmentID, seq eventlog.Seq) []byte {
	return appendEventKey(make([]byte, 0, eventKeySize), s, seq)
}

func appendEventKey(k []byte, s segmentID, seq eventlog.Seq) []byte {
	return binary.BigEndian.AppendUint64(appendKindPrefix(k, s, keyEvent), uint64(seq))
}

func putsKey(s segmentID) []byte { return kindPrefix(s, keyPuts) }

func referenceKey(s segmentID, session string) []byte {
	return append(kindPrefix(s, keyReference), session...)
}

const eventIDHashSize = 16

// idHash replaces an event_id in keys.
type idHash [eventIDHashSize]byte

func eventIDHash(eventID string) idHash {
	sum := sha256.Sum256([]byte(eventID))
	return idHash(sum[:eventIDHashSize])
}

func indexKey(s segmentID, hash idHash) []byte { return append(kindPrefix(s, keyIndex), hash[:]...) }

func artifactKindPrefix(s segmentID, kind string) []byte {
	return appendText(kindPrefix(s, keyArtifact), kind)
}

// artifactPrefix begins the keys of all versions of an artifact.
func artifactPrefix(s segmentID, kind string, seq eventlog.Seq, id string) []byte {
	k := binary.BigEndian.AppendUint64(artifactKindPrefix(s, kind), uint64(seq))
	return appendText(k, id)
}

func artifactKey(s segmentID, kind string, seq eventlog.Seq, id string, put uint64) []byte {
	return binary.BigEndian.AppendUint64(artifactPrefix(s, kind, seq, id), put)
}

// artifactName is the part of an artifact's key after the segment.
type artifactName struct {
	kind string
	seq  eventlog.Seq
	id   string
	put  uint64
}

// parseArtifactKey is the inverse of artifactKey.
func parseArtifactKey(key []byte) (n artifactName, ok bool) {
	if len(key) < 10 || key[0] != keySegment || key[9] != keyArtifact {
		return n, false
	}
	rest := key[10:]
	if n.kind, rest, ok = cutText(rest); !ok || len(rest) < 8 {
		return n, false
	}
	n.seq = eventlog.Seq(binary.BigEndian.Uint64(rest))
	if n.id, rest, ok = cutText(rest[8:]); !ok || len(rest) != 8 {
		return n, false
	}
	n.put = binary.BigEndian.Uint64(rest)
	return n, true
}

const eventKeySize = 18

// keySeq returns the seq of an event's key; 0 for others.
func keySeq(key []byte) eventlog.Seq {
	if len(key) != eventKeySize {
		return 0
	}
	return eventlog.Seq(binary.BigEndian.Uint64(key[10:]))
}

// keySegmentID returns the segment of a segment's key; 0 for others.
func keySegmentID(key []byte) segmentID {
	if len(key) < 9 || key[0] != keySegment {
		return 0
	}
	return segmentID(binary.BigEndian.Uint64(key[1:9]))
}

// appendText encodes a string so that keys sort like the strings, and no encoding is a prefix of another.
func appendText(k []byte, s string) []byte {
	for i := range len(s) {
		k = append(k, s[i])
		if s[i] == 0 {
			k = append(k, 0xFF)
		}
	}
	return append(k, 0, 1)
}

func cutText(k []byte) (s string, rest []byte, ok bool) {
	var text []byte
	for {
		at := bytes.IndexByte(k, 0)
		if at < 0 || at+1 == len(k) {
			return "", nil, false
		}
		text = append(text, k[:at]...)
		mark := k[at+1]
		k = k[at+2:]
		switch mark {
		case 1:
			return string(text), k, true
		case 0xFF:
			text = append(text, 0)
		default:
			return "", nil, false
		}
	}
}

// prefixEnd returns the first key after all keys with the prefix; nil if there is
// none.
func prefixEnd(prefix []byte) []byte {
	end := slices.Clone(prefix)
	for i := len(end) - 1; i >= 0; i-- {
		end[i]++
		if end[i] != 0 {
			return end[:i+1]
		}
	}
	return nil
}
