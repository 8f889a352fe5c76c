package pglog

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"google.golang.org/protobuf/proto"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/eventcodec"
	storagev1 "github.com/contextd/contextd/proto/contextd/storage/v1"
)

// settled is a commit that needs no waiting: its batch is durable, or it is not known whether it is.
type settled struct {
	receipts []eventlog.Receipt
	err      error
}

func (c settled) Wait(context.Context) ([]eventlog.Receipt, error) { return c.receipts, c.err }

// encodedEvent is the part of storing an event that needs no log.
type encodedEvent struct{ record, idHash []byte }

func encodeEvents(events []eventlog.Event) []encodedEvent {
	encoded := make([]encodedEvent, len(events))
	for i, e := range events {
		hash := sha256.Sum256([]byte(e.ID))
		// Most of it is content; 128 bytes hold the rest of a plain message.
		encoded[i] = encodedEvent{eventcodec.Append(make([]byte, 0, eventlog.Size(e)+128), e), hash[:]}
	}
	return encoded
}

// Append admits a batch.
func (s *Store) Append(ctx context.Context, id string, b eventlog.Batch) (eventlog.Commit, error) {
	if err := eventlog.ValidateSessionID("session_id", id); err != nil {
		return nil, err
	}
	prepared, err := eventlog.Prepare(b)
	if err != nil {
		return nil, err
	}
	if err := validateArtifacts(b.Artifacts); err != nil {
		return nil, err
	}
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.leave()
	encoded := encodeEvents(prepared.Events())
	var c settled
	err = s.retried(ctx, id, "the batch", func() error {
		var err error
		c, err = s.appendOnce(ctx, id, b, prepared, encoded)
		return err
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

func (s *Store) appendOnce(ctx context.Context, id string, b eventlog.Batch, prepared eventlog.PreparedBatch, encoded []encodedEvent) (settled, error) {
	target, known, err := s.loadFor(ctx, id, encoded)
	created := errors.As(err, new(*eventlog.NotFoundError))
	if err != nil && !created {
		return settled{}, err
	}
	if created {
		target = &session{info: eventlog.Session{ID: id, CreateTime: b.Time.UTC().Round(0)}}
	}
	switch {
	case b.Of == nil:
	case *b.Of == 0 && !created:
		return settled{}, &eventlog.ExistsError{Kind: "session", Name: id}
	case *b.Of != 0 && target.info.Incarnation != *b.Of:
		return settled{}, noSession(id)
	}
	admission, err := prepared.Admit(target.at.head, func(i int) (eventlog.Known, bool, error) {
		k, found := known[string(encoded[i].idHash)]
		return k, found, nil
	})
	if err != nil {
		return settled{}, err
	}
	if len(admission.Fresh) == 0 {
		return settled{receipts: admission.Receipts}, nil
	}
	if !eventlog.AllOf(b.Artifacts, target.info.Incarnation) {
		return settled{}, noSession(id)
	}
	w, err := s.begin(ctx, target, b.Artifacts)
	if err != nil {
		return settled{}, err
	}
	if err := w.add(admission, encoded, b); err != nil {
		return settled{}, err
	}
	err = s.run(ctx, w)
	if lost, ok := errors.AsType[uncertainError](err); ok {
		return settled{err: lost.error}, nil
	}
	return settled{receipts: admission.Receipts}, err
}

// add adds events.
func (w *write) add(a eventlog.Admission, encoded []encodedEvent, b eventlog.Batch) (err error) {
	w.at.head = w.at.head.Clone() // it is changed in place
	for _, f := range a.Fresh {
		e := encoded[f.Index]
		var head []byte
		first := f.Event.Seq == w.session.info.ForkSeq+1
		if w.at, head, err = w.at.after(f, e.record, b.Time.UTC().Round(0), first); err != nil {
			return fmt.Errorf("encode event %d: %w", f.Event.Seq, err)
		}
		chain := w.at.chain
		w.seqs = append(w.seqs, int64(f.Event.Seq))
		w.idHashes = append(w.idHashes, e.idHash)
		w.digests = append(w.digests, f.Digest[:])
		w.records = append(w.records, e.record)
		w.heads = append(w.heads, head)
		w.chains = append(w.chains, chain[:])
		w.logBytes = append(w.logBytes, int64(w.at.bytes))
	}
	return nil
}

// loadFor reads a session and what it knows of the event_ids, by their hash, in one statement: as
// they were at one time.
func (s *Store) loadFor(ctx context.Context, id string, events []encodedEvent) (*session, map[string]eventlog.Known, error) {
	hashes := make([][]byte, len(events))
	for i, e := range events {
		hashes[i] = e.idHash
	}
	limited, cancel := s.reading(ctx)
	defer cancel()
	const sql = `SELECT ` + sessionColumns + `, e.id_hash, e.seq, e.digest, e.record FROM contextd_sessions s LEFT JOIN
		(contextd_shares h JOIN contextd_events e ON e.segment = h.segment AND e.seq <= h.up_to AND e.id_hash = ANY($2))
		ON h.incarnation = s.incarnation WHERE s.id = $1`
	rows, _ := s.pool.Query(limited, sql, []byte(id), hashes) // the error is the rows' as well
	var (
		c                    columns
		hash, digest, record []byte
		seq                  *int64
	)
	known := map[string]eventlog.Known{}
	tag, err := pgx.ForEachRow(rows, append(c.targets(), &hash, &seq, &digest, &record), func() error {
		if seq == nil {
			return nil
		}
		k, err := decodeKnown(eventlog.Seq(*seq), digest, record)
		known[string(hash)] = k
		return err
	})
	switch {
	case err != nil:
		return nil, nil, failure(ctx, err)
	case tag.RowsAffected() == 0:
		return nil, nil, noSession(id)
	}
	found, err := c.session()
	return found, known, err
}

func decodeKnown(seq eventlog.Seq, digest, record []byte) (eventlog.Known, error) {
	var m storagev1.Event
	if err := proto.Unmarshal(record, &m); err != nil {
		return eventlog.Known{}, &eventlog.CorruptError{What: fmt.Sprintf("event %d", seq), Reason: err.Error()}
	}
	e, _ := eventcodec.Decode(&m)
	k := eventlog.Known{Seq: seq, Tokens: e.Tokens}
	copy(k.Digest[:], digest)
	return k, nil
}
