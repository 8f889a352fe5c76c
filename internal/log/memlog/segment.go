package memlog

import (
	"cmp"
	"crypto/sha256"
	"maps"
	"math"
	"slices"

	eventlog "github.com/contextd/contextd/internal/log"
)

// segment has the events and artifacts that one session wrote. Forks share it up to a bound.
type segment struct {
	base      eventlog.Seq // of the event before records[0]
	records   []record
	seqs      map[string]eventlog.Seq // by event_id
	artifacts map[artifactKey][]version
	// order holds the keys of artifacts by kind, each in the order of seq and id.
	order map[string][]artifactKey
	puts  uint64 // artifacts ever put
	refs  map[*session]link
}

type record struct {
	event  eventlog.Event
	digest [sha256.Size]byte
	change eventlog.HeadChange
	bytes  uint64 // of the log up to this event
}

type artifactKey struct {
	kind string
	seq  eventlog.Seq
	id   string
}

func (k artifactKey) compare(o artifactKey) int {
	return cmp.Or(cmp.Compare(k.seq, o.seq), cmp.Compare(k.id, o.id))
}

// version is one put of an artifact. Older versions are kept as long as a fork shares them.
type version struct {
	put   uint64
	value []byte
}

// link is a session's share in a segment: the events up to seq upTo, and those artifacts up to upTo that are among
// the segment's first puts puts.
type link struct {
	segment *segment
	upTo    eventlog.Seq
	puts    uint64
}

func newSegment(base eventlog.Seq) *segment {
	return &segment{
		base:      base,
		seqs:      map[string]eventlog.Seq{},
		artifacts: map[artifactKey][]version{},
		order:     map[string][]artifactKey{},
		refs:      map[*session]link{},
	}
}

// whole returns the link of the segment's writer.
func (s *segment) whole() link { return link{segment: s, upTo: math.MaxUint64, puts: math.MaxUint64} }

// last returns the seq of the newest event that the link shows; the segment's base if it shows none.
func (l link) last() eventlog.Seq {
	return max(l.segment.base, min(l.upTo, l.segment.base+eventlog.Seq(len(l.segment.records))))
}

// slice returns the link's records within from..to.
func (l link) slice(from, to eventlog.Seq) []record {
	from, to = max(from, l.segment.base+1), min(to, l.last())
	if from > to {
		return nil
	}
	return l.segment.records[from-l.segment.base-1 : to-l.segment.base]
}

// find returns the record with the event_id.
func (l link) find(eventID string) (record, bool) {
	seq, ok := l.segment.seqs[eventID]
	if !ok || seq > l.upTo {
		return record{}, false
	}
	return l.segment.records[seq-l.segment.base-1], true
}

// artifact returns the newest version that the link shows.
func (l link) artifact(key artifactKey) (version, bool) {
	if key.seq > l.upTo {
		return version{}, false
	}
	for _, v := range slices.Backward(l.segment.artifacts[key]) {
		if v.put <= l.puts {
			return v, true
		}
	}
	return version{}, false
}

// nextArtifact returns the first artifact of the query that the link shows; nil if there is none.
func (l link) nextArtifact(q eventlog.ArtifactQuery) (*artifactKey, version) {
	keys := l.segment.order[q.Kind]
	step := 1
	at, _ := slices.BinarySearchFunc(keys, artifactKey{seq: q.From}, artifactKey.compare)
	if q.Reverse {
		step, at = -1, len(keys)-1
		if q.To != 0 && q.To < math.MaxUint64 {
			at, _ = slices.BinarySearchFunc(keys, artifactKey{seq: q.To + 1}, artifactKey.compare)
			at--
		}
	}
	if q.After != nil {
		found, ok := slices.BinarySearchFunc(keys, artifactKey{q.Kind, q.After.Seq, q.After.ID}, artifactKey.compare)
		switch {
		case q.Reverse:
			at = min(at, found-1)
		case ok:
			at = max(at, found+1)
		default:
			at = max(at, found)
		}
	}
	for ; at >= 0 && at < len(keys); at += step {
		key := keys[at]
		if key.seq < q.From && q.Reverse || q.To != 0 && key.seq > q.To && !q.Reverse {
			break
		}
		if v, ok := l.artifact(key); ok {
			return &key, v
		}
	}
	return nil, version{}
}

// put adds a version of an artifact and removes those that no session shows.
func (s *segment) put(key artifactKey, value []byte) {
	if at, ok := slices.BinarySearchFunc(s.order[key.kind], key, artifactKey.compare); !ok {
		s.order[key.kind] = slices.Insert(s.order[key.kind], at, key)
	}
	s.puts++
	s.artifacts[key] = append(s.artifacts[key], version{put: s.puts, value: value})
	s.pruneArtifact(key)
}

// size returns the size of all stored versions of an artifact.
func (s *segment) size(key artifactKey) (n uint64) {
	for _, v := range s.artifacts[key] {
		n += eventlog.Artifact{Kind: key.kind, ID: key.id, Value: v.value}.Size()
	}
	return n
}

// prune removes what no session shows any more after the session with the link gone was deleted.
func (s *segment) prune(gone link) {
	var upTo eventlog.Seq
	for _, l := range s.refs {
		if l.upTo >= gone.upTo && l.puts == gone.puts {
			return // another session shows as much, as in most chains of forks: nothing to remove
		}
		upTo = max(upTo, l.upTo)
	}
	if keep := (link{segment: s, upTo: upTo}).last() - s.base; int(keep) < len(s.records) {
		// This makes a new array, because readers may still use the old one.
		s.records = slices.Clone(s.records[:keep])
		maps.DeleteFunc(s.seqs, func(_ string, seq eventlog.Seq) bool { return seq > s.base+keep })
	}
	for key := range s.artifacts {
		s.pruneArtifact(key)
	}
}

func (s *segment) pruneArtifact(key artifactKey) {
	var kept []version
	for _, v := range s.artifacts[key] {
		for _, l := range s.refs {
			if shown, ok := l.artifact(key); ok && shown.put == v.put {
				kept = append(kept, v)
				break
			}
		}
	}
	if len(kept) == 0 {
		delete(s.artifacts, key)
		if at, ok := slices.BinarySearchFunc(s.order[key.kind], key, artifactKey.compare); ok {
			s.order[key.kind] = slices.Delete(s.order[key.kind], at, at+1)
		}
		return
	}
	s.artifacts[key] = kept
}
