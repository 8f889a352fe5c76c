package disklog

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	eventlog "github.com/contextd/contextd/internal/log"
	storagev1 "github.com/contextd/contextd/proto/contextd/storage/v1"
)

// PutArtifacts stores copies of the artifacts in one batch.
func (s *Store) PutArtifacts(ctx context.Context, id string, all ...eventlog.Artifact) (err error) {
	defer inSession(id, &err)
	if err := s.enterToAdd(ctx); err != nil {
		return err
	}
	defer s.leave()
	sl, target, err := s.find(id)
	if err != nil {
		return err
	}
	defer s.release(sl)
	if err := eventlog.ValidateArtifacts(all); err != nil || len(all) == 0 {
		return err
	}
	c, err := s.put(ctx, sl, target, all)
	if err != nil {
		return err
	}
	return c.wait(ctx)
}

func (s *Store) put(ctx context.Context, sl *slot, target *session, all []eventlog.Artifact) (*commit, error) {
	for {
		// The versions that this put replaces must be in the database, so it waits for the put before. It does so
		// without the lock, under which appends would wait as well.
		before := target.lastPut.Load()
		if err := before.wait(ctx); err != nil {
			return nil, err
		}
		if c, err := s.putAfter(before, sl, target, all); c != nil || err != nil {
			return c, err
		}
	}
}

// putAfter stores artifacts if before is still the session's newest put; else it returns nil and stores nothing.
func (s *Store) putAfter(before *commit, sl *slot, target *session, all []eventlog.Artifact) (*commit, error) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	if sl.session.Load() != target || !eventlog.AllOf(all, target.incarnation()) {
		return nil, eventlog.NoSession(sl.id)
	}
	if target.lastPut.Load() != before {
		return nil, nil
	}
	batch := s.db.NewBatch()
	put, err := s.stageAll(batch, sl.id, target, all)
	if err != nil {
		return nil, err
	}
	c, err := s.submit(batch, func() { target.keep(put.bytes) }, target.lastPut.Store, sl)
	if err != nil {
		return nil, err
	}
	target.puts, target.last = put, c
	return c, nil
}

// stageAll adds the artifacts to the batch and returns the counters after them. The put before must be durable.
func (s *Store) stageAll(batch *pebble.Batch, id string, target *session, all []eventlog.Artifact) (put puts, err error) {
	for _, a := range all {
		if !a.New {
			continue
		}
		if err := s.vacant(id, target, a); err != nil {
			return put, err
		}
	}
	put = target.puts
	for _, a := range all {
		if put, err = s.stage(batch, id, target, put, a); err != nil {
			return put, err
		}
	}
	return put, putPuts(batch, target.own().segment, put)
}

// stage adds an artifact to the batch, and deletes the version that it replaces unless a fork still shows that.
func (s *Store) stage(batch *pebble.Batch, id string, target *session, put puts, a eventlog.Artifact) (puts, error) {
	own := target.own()
	if !a.New { // one that is new replaces nothing
		var spare spareIterator
		defer spare.close()
		replaced, value, err := s.version(&spare, own, a.Kind, a.Seq, a.ID)
		shared := false
		if err == nil && replaced <= put.frozen {
			shared, err = s.shared(id, target, artifactName{kind: a.Kind, seq: a.Seq, id: a.ID, put: replaced})
		}
		switch {
		case errors.Is(err, errNoVersion):
		case err != nil:
			return put, err
		case !shared:
			if err := batch.Delete(artifactKey(own.segment, a.Kind, a.Seq, a.ID, replaced), nil); err != nil {
				return put, err
			}
			put.bytes -= min(put.bytes, eventlog.Artifact{Kind: a.Kind, ID: a.ID, Value: value}.Size())
		}
	}
	put.last++
	put.bytes += a.Size()
	key := artifactKey(own.segment, a.Kind, a.Seq, a.ID, put.last)
	value, err := encode(key, keyArtifact, &storagev1.Artifact{Value: a.Value})
	if err != nil {
		return put, err
	}
	return put, s.set(batch, key, own.segment, value)
}

// shared reports whether another session shows a version of an artifact. If damage hides that, it returns true. The
// slot's mu is held.
func (s *Store) shared(id string, target *session, name artifactName) (bool, error) {
	// Forks that are being committed must be in the database to be found.
	if err := target.last.wait(context.Background()); err != nil {
		return false, err
	}
	shares, err := s.shares(target.own().segment, id, nil)
	if _, corrupt := errors.AsType[*eventlog.CorruptError](err); corrupt {
		return true, nil
	}
	return anyShows(shares, name, unbounded), err
}

// settled waits until every artifact that can be read is durable. Open an iterator before the call, so that all it
// shows is durable after it.
func (s *session) settled(ctx context.Context) error { return s.lastPut.Load().wait(ctx) }

// Artifact returns one artifact.
func (s *Store) Artifact(ctx context.Context, id, kind string, seq eventlog.Seq, artifactID string) (_ eventlog.Artifact, err error) {
	defer inSession(id, &err)
	if err := s.enter(ctx); err != nil {
		return eventlog.Artifact{}, err
	}
	defer s.leave()
	sl, found, err := s.find(id)
	if err != nil {
		return eventlog.Artifact{}, err
	}
	defer s.release(sl)
	var spare spareIterator
	defer spare.close()
	value, err := s.shown(found, &spare, kind, seq, artifactID)
	if errors.Is(err, errNoVersion) {
		if err := found.deleted(ctx); err != nil {
			return eventlog.Artifact{}, err
		}
		return eventlog.Artifact{}, &eventlog.NotFoundError{Kind: "artifact", Name: fmt.Sprintf("%s/%d/%s", kind, seq, artifactID)}
	}
	if err == nil {
		err = found.settled(ctx)
	}
	return eventlog.Artifact{Kind: kind, Seq: seq, ID: artifactID, Value: value}, err
}

// shown returns the value of an artifact that a session shows, which need not be durable
// yet, or errNoVersion.
func (s *Store) shown(found *session, spare *spareIterator, kind string, seq eventlog.Seq, id string) ([]byte, error) {
	for _, l := range slices.Backward(found.links) {
		if seq > l.upTo || l.puts == 0 {
			continue
		}
		if _, value, err := s.version(spare, l, kind, seq, id); !errors.Is(err, errNoVersion) {
			return value, err
		}
	}
	return nil, errNoVersion
}

// vacant returns a *ConflictError if a session shows an artifact with the key.
func (s *Store) vacant(id string, target *session, a eventlog.Artifact) error {
	var spare spareIterator
	defer spare.close()
	switch _, err := s.shown(target, &spare, a.Kind, a.Seq, a.ID); {
	case errors.Is(err, errNoVersion):
		return nil
	case err != nil:
		return err
	default:
		return &eventlog.ConflictError{Session: id, What: fmt.Sprintf("artifact %s/%d/%s", a.Kind, a.Seq, a.ID)}
	}
}

var errNoVersion = errors.New("the link shows no version of the artifact")

// version returns the newest version of an artifact that the link shows, with
// its put number, or errNoVersion.
func (s *Store) version(spare *spareIterator, l link, kind string, seq eventlog.Seq, id string) (put uint64, value []byte, err error) {
	prefix := artifactPrefix(l.segment, kind, seq, id)
	upper := prefixEnd(prefix)
	if l.puts < unbounded {
		upper = artifactKey(l.segment, kind, seq, id, l.puts+1)
	}
	it, err := spare.within(s, prefix, upper)
	if err != nil {
		return 0, nil, err
	}
	if !it.Last() {
		if err := it.Error(); err != nil {
			return 0, nil, s.fail("artifacts", err)
		}
		return 0, nil, errNoVersion
	}
	name, value, err := s.artifactUnder(it)
	return name.put, value, err
}

// artifactUnder decodes the artifact at an iterator's position.
func (s *Store) artifactUnder(it *pebble.Iterator) (artifactName, []byte, error) {
	name, ok := parseArtifactKey(it.Key())
	if !ok {
		return name, nil, &eventlog.CorruptError{What: describeKey(it.Key()), Reason: "it is no artifact's key"}
	}
	stored, err := s.valueOf(it)
	if err != nil {
		return name, nil, err
	}
	var m storagev1.Artifact
	if err := decode(it.Key(), keyArtifact, stored, &m); err != nil {
		return name, nil, err
	}
	return name, m.GetValue(), nil
}

// loadPuts reads a segment's counters of artifacts.
func (s *Store) loadPuts(segment segmentID) (puts, error) {
	key := putsKey(segment)
	value, closer, err := s.get(key)
	switch {
	case errors.Is(err, pebble.ErrNotFound):
		return puts{}, nil
	case err != nil:
		return puts{}, s.fail(describeKey(key), err)
	}
	defer closer.Close()
	var m storagev1.Puts
	err = decode(key, keyPuts, value, &m)
	return puts{m.GetLast(), m.GetFrozen(), m.GetBytes()}, err
}
