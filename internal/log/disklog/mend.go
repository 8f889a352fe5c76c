package disklog

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/disklog/salvage"
)

// mend cuts a session's log before its first lost event, records the loss for the report, and returns the remaining
// links, if any.
func (b *rebuilding) mend(ctx context.Context, id string) ([]link, error) {
	r, loss, err := b.recordOf(id)
	if err != nil || loss.Gone {
		if r != nil || loss.Why != "" {
			b.out.Losses = append(b.out.Losses, loss)
		}
		return nil, err
	}
	own := r.own()
	seen := b.seen(own.segment)
	loss.Records += seen.records
	var at state
	last := max(seen.last, own.base)
	for i, l := range r.links {
		var fault error
		if at, fault = b.store.verifyLink(ctx, l, at, min(last, l.upTo)); fault == nil {
			continue
		}
		if _, corrupt := errors.AsType[*eventlog.CorruptError](fault); !corrupt {
			return nil, fault
		}
		loss.From, loss.To = at.head.Seq+1, last
		loss.Why = cmp.Or(b.seen(l.segment).fault, loss.Why, fault.Error())
		r.links = endAt(r.links, i, at.head.Seq)
		break
	}
	loss.Kept = at.head.Seq
	if loss.Settings && loss.Kept == 0 {
		loss.Gone = true
		b.out.Losses = append(b.out.Losses, loss)
		return nil, nil
	}
	batch := b.store.db.NewBatch()
	lost, err := b.cut(batch, own.segment, loss.Kept)
	if err != nil {
		return nil, err
	}
	loss.Records += lost
	loss.Unsure = loss.From == 0 && (b.logLost || b.inGap(eventKey(own.segment, loss.Kept+1)))
	if err := errors.Join(b.store.putSession(batch, r), batch.Commit(pebble.NoSync)); err != nil {
		return nil, err
	}
	if loss.From == 0 && loss.Records == 0 && !loss.Settings && !loss.Unsure {
		b.out.Whole++
	} else {
		b.out.Losses = append(b.out.Losses, loss)
	}
	return r.links, nil
}

// recordOf returns a session's record, rebuilt from references if the record is lost. Loss.Gone says that the session
// cannot be rebuilt; if it has no reason, the session was deleted.
func (b *rebuilding) recordOf(id string) (*record, Loss, error) {
	loss := Loss{Session: id, Why: b.ids[id]}
	if loss.Why == "" {
		key := sessionKey(id)
		value, closer, err := b.store.get(key)
		if err != nil {
			return nil, loss, b.store.fail(describeKey(key), err)
		}
		r, err := decodeSession(key, value)
		if err := errors.Join(err, closer.Close()); err != nil {
			return nil, loss, err
		}
		if loss.Gone = b.erased[r.own().segment]; loss.Gone {
			return nil, loss, b.store.db.Delete(key, pebble.NoSync)
		}
		return r, loss, nil
	}
	links := b.references[id]
	slices.SortFunc(links, func(x, y link) int { return cmp.Compare(x.segment, y.segment) })
	loss.Settings = true
	switch n := len(links); {
	case n == 0 || !links[n-1].owned():
		loss.Gone = true
	case b.erased[links[n-1].segment]:
		loss.Gone, loss.Why = true, ""
	case b.store.keys != nil && !b.store.keys.Has(uint64(links[n-1].segment)):
		// The session was deleted after the backup was taken from which this store was restored, or its key's file is
		// lost.
		loss.Gone = true
	}
	if loss.Gone {
		return nil, loss, nil
	}
	for i := range links[1:] {
		links[i+1].base = links[i].upTo
	}
	return &record{info: eventlog.Session{ID: id, CreateTime: b.now}, links: links}, loss, nil
}

// endAt cuts a log after seq, which is in links[i].
func endAt(links []link, i int, seq eventlog.Seq) []link {
	own := links[len(links)-1]
	if i == len(links)-1 {
		return links
	}
	kept := slices.Clone(links[:i])
	if l := links[i]; seq > l.base || l.puts > 0 {
		l.upTo = seq
		kept = append(kept, l)
	}
	own.base = seq
	return append(kept, own)
}

// cut removes a segment's content after an event, and returns how many artifacts that removed.
func (b *rebuilding) cut(batch *pebble.Batch, segment segmentID, after eventlog.Seq) (artifacts int, err error) {
	if err := b.store.truncate(batch, segment, after); err != nil {
		return 0, err
	}
	prefix := kindPrefix(segment, keyArtifact)
	err = b.store.scan(prefix, prefixEnd(prefix), func(it *pebble.Iterator) error {
		if name, ok := parseArtifactKey(it.Key()); ok && (name.seq <= after || name.seq >= noEvent) {
			return nil
		}
		artifacts++
		return batch.Delete(it.Key(), nil)
	})
	return artifacts, err
}

// inGap reports whether a key may have been in a part of a table that is lost.
func (r *repairer) inGap(key []byte) bool {
	return slices.ContainsFunc(r.gaps, func(g salvage.Gap) bool {
		return bytes.Compare(key, g.After) >= 0 && (g.Before == nil || bytes.Compare(key, g.Before) < 0)
	})
}
