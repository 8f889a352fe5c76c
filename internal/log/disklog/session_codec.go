package disklog

import (
	"bytes"
	"maps"
	"math"
	"time"

	eventlog "github.com/contextd/contextd/internal/log"
	storagev1 "github.com/contextd/contextd/proto/contextd/storage/v1"
)

// unbounded is the bound in a session's link to its own segment, of which it shows everything.
const unbounded = math.MaxUint64

// link is a session's share in a segment: the events up to seq upTo, and those artifacts up to upTo that are among
// the segment's first puts puts.
type link struct {
	segment segmentID
	base    eventlog.Seq // of the event before the segment's first
	upTo    eventlog.Seq
	puts    uint64
}

func (l link) owned() bool { return l.upTo == unbounded }

// record has what is stored of a session itself.
type record struct {
	info  eventlog.Session // Head, Turns, LogBytes and UpdateTime are not stored here
	links []link           // oldest first; the last is owned
}

func (r *record) own() link { return r.links[len(r.links)-1] }

// incarnation returns the number of the session's own segment, which no other session owns.
func (r *record) incarnation() eventlog.Incarnation { return eventlog.Incarnation(r.own().segment) }

func newRecord(from eventlog.Session, links []link) *record {
	created := from.CreateTime.UTC().Round(0)
	return &record{
		info: eventlog.Session{
			ID:         from.ID,
			CreateTime: created,
			UpdateTime: created,
			Labels:     maps.Clone(from.Labels),
			Settings:   bytes.Clone(from.Settings),
			ParentID:   from.ParentID,
			ForkSeq:    from.ForkSeq,
		},
		links: links,
	}
}

func encodeSession(key []byte, r *record) ([]byte, error) {
	m := &storagev1.Session{
		CreateSeconds: r.info.CreateTime.Unix(),
		CreateNanos:   int32(r.info.CreateTime.Nanosecond()),
		Labels:        r.info.Labels,
		Settings:      r.info.Settings,
		ParentId:      r.info.ParentID,
		ForkSeq:       uint64(r.info.ForkSeq),
	}
	for _, l := range r.links {
		upTo, puts := l.bounds()
		m.Links = append(m.Links, &storagev1.Link{Segment: uint64(l.segment), Base: uint64(l.base), UpTo: upTo, Puts: puts})
	}
	return encode(key, keySession, m)
}

func decodeSession(key, value []byte) (*record, error) {
	var m storagev1.Session
	if err := decode(key, keySession, value, &m); err != nil {
		return nil, err
	}
	created := time.Unix(m.GetCreateSeconds(), int64(m.GetCreateNanos())).UTC()
	r := &record{info: eventlog.Session{
		ID:         string(key[1:]),
		CreateTime: created,
		UpdateTime: created,
		Labels:     m.GetLabels(),
		Settings:   m.GetSettings(),
		ParentID:   m.GetParentId(),
		ForkSeq:    eventlog.Seq(m.GetForkSeq()),
	}}
	for _, l := range m.GetLinks() {
		decoded := link{segment: segmentID(l.GetSegment()), base: eventlog.Seq(l.GetBase())}
		decoded.upTo, decoded.puts = readBounds(l.UpTo, l.Puts)
		r.links = append(r.links, decoded)
	}
	if len(r.links) == 0 || !r.own().owned() {
		return nil, &eventlog.CorruptError{What: describeKey(key), Reason: "its last link is not its own segment"}
	}
	return r, nil
}

func (l link) bounds() (upTo, puts *uint64) {
	if l.owned() {
		return nil, nil
	}
	u, p := uint64(l.upTo), l.puts
	return &u, &p
}

func readBounds(upTo, puts *uint64) (eventlog.Seq, uint64) {
	if upTo == nil || puts == nil {
		return unbounded, unbounded
	}
	return eventlog.Seq(*upTo), *puts
}

func encodeReference(key []byte, l link) ([]byte, error) {
	upTo, puts := l.bounds()
	return encode(key, keyReference, &storagev1.Reference{UpTo: upTo, Puts: puts})
}

func decodeReference(key, value []byte) (link, error) {
	var m storagev1.Reference
	if err := decode(key, keyReference, value, &m); err != nil {
		return link{}, err
	}
	l := link{segment: keySegmentID(key)}
	l.upTo, l.puts = readBounds(m.UpTo, m.Puts)
	return l, nil
}
