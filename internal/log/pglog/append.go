package pglog

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"google.golang.org/protobuf/proto"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/eventcodec"
	storagev1 "github.com/contextd/contextd/proto/contextd/storage/v1"
)

// settled is a Commit whose outcome is known already: the batch is durable, or err says why that is unknown.
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
	if c, done, err := s.appendToKnown(ctx, id, b, prepared, encoded); err != nil {
		return nil, err
	} else if done {
		return c, nil
	}
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

// appendToKnown tries an append on the cached session, or on a new one if the batch says so, without reading first.
// done is false if the cache does not admit the batch or is outdated: then nothing was stored.
func (s *Store) appendToKnown(ctx context.Context, id string, b eventlog.Batch, prepared eventlog.PreparedBatch, encoded []encodedEvent) (c settled, done bool, err error) {
	found := &finding{}
	if k := s.memory.get(id); k != nil {
		found.session = k.session
	} else if b.Of == nil || *b.Of != 0 {
		return settled{}, false, nil
	}
	if found.session != nil && len(found.session.shared) > 0 { // events of the sessions above it may have the ids
		return settled{}, false, nil
	}
	admission, err := found.admit(id, b, prepared, encoded)
	if err == nil {
		if err = s.appendTo(ctx, found.session, b, admission, encoded); !errors.Is(err, errLost) {
			c, err = settle(admission.Receipts, err)
			return c, true, err
		}
	}
	if eventlog.IsFromMemory(ctx) {
		return settled{}, true, &eventlog.ConflictError{Session: id, What: "the batch"}
	}
	return settled{}, false, nil
}

// settle makes the result of Append. An uncertain error is returned by Commit.Wait.
func settle(receipts []eventlog.Receipt, err error) (settled, error) {
	if lost, ok := errors.AsType[uncertainError](err); ok {
		return settled{err: lost.error}, nil
	}
	return settled{receipts: receipts}, err
}

func (s *Store) appendOnce(ctx context.Context, id string, b eventlog.Batch, prepared eventlog.PreparedBatch, encoded []encodedEvent) (settled, error) {
	found, err := s.loadFor(ctx, id, encoded)
	if err != nil {
		return settled{}, err
	}
	admission, err := found.admit(id, b, prepared, encoded)
	if err == nil && len(admission.Fresh) == 0 && found.waits {
		found, err = s.confirmFor(ctx, id, encoded)
		if err == nil {
			admission, err = found.admit(id, b, prepared, encoded)
		}
	}
	if err == nil && len(admission.Fresh) > 0 {
		err = s.appendTo(ctx, found.session, b, admission, encoded)
	}
	if errors.Is(err, errLost) {
		err = s.conflictOf(ctx, found.session, b.Artifacts)
	}
	return settle(admission.Receipts, err)
}

// admit admits a batch to the session that was found. If there was none, it sets f.session to a new one.
func (f *finding) admit(id string, b eventlog.Batch, prepared eventlog.PreparedBatch, encoded []encodedEvent) (eventlog.Admission, error) {
	switch {
	case b.Of == nil:
	case *b.Of == 0 && f.session != nil:
		return eventlog.Admission{}, &eventlog.ExistsError{Kind: "session", Name: id}
	case *b.Of != 0 && (f.session == nil || f.session.info.Incarnation != *b.Of):
		return eventlog.Admission{}, eventlog.NoSession(id)
	}
	if f.session == nil {
		f.session = &session{info: eventlog.Session{ID: id, CreateTime: b.Time.UTC().Round(0)}}
	}
	return prepared.Admit(f.session.at.head, func(i int) (eventlog.Known, bool, error) {
		k, known := f.known[string(encoded[i].idHash)]
		return k, known, nil
	})
}

func (s *Store) appendTo(ctx context.Context, to *session, b eventlog.Batch, admission eventlog.Admission, encoded []encodedEvent) error {
	if !eventlog.AllOf(b.Artifacts, to.info.Incarnation) {
		return eventlog.NoSession(to.info.ID)
	}
	w := begin(to, b.Artifacts)
	if err := w.add(admission, encoded, b); err != nil {
		return err
	}
	if to.info.Incarnation == 0 || len(b.Artifacts) > 0 {
		return s.run(ctx, w)
	}
	return s.runGrouped(ctx, w)
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

// finding is the result of one statement: a session, and what its log knows of a batch's event_ids, by their hashes.
type finding struct {
	session *session // nil if there is none
	known   map[string]eventlog.Known
	// waits is set if the server's commits wait for standbys.
	waits bool
}

const (
	// The subquery with a limit is looked up in the index for each event: see moveSession.
	findFor = `, ` + sessionColumns + `, f.id_hash, f.seq, f.digest, f.record FROM contextd_sessions s LEFT JOIN LATERAL (
		SELECT w.id_hash, e.seq, e.digest, e.record FROM contextd_shares h CROSS JOIN unnest($2::bytea[]) AS w (id_hash) CROSS JOIN LATERAL
			(SELECT x.seq, x.digest, x.record FROM contextd_events x WHERE x.segment = h.segment AND x.id_hash = w.id_hash LIMIT 1) AS e
		WHERE h.incarnation = s.incarnation AND e.seq <= h.up_to) AS f ON true WHERE s.id = $1`
	findOnly       = `SELECT ` + standbys + ` <> ''` + findFor
	findAndConfirm = `SELECT ` + confirming + findFor
)

// loadFor reads a session for a batch in one statement.
func (s *Store) loadFor(ctx context.Context, id string, events []encodedEvent) (*finding, error) {
	limited, cancel := s.reading(ctx)
	defer cancel()
	rows, _ := s.pool.Query(limited, findOnly, []byte(id), hashesOf(events)) // the error is the rows' as well
	f, err := findingOf(rows)
	if err != nil {
		return nil, failure(ctx, err)
	}
	return f, nil
}

// confirmFor does the same as loadFor, but what it finds is durable on the standbys, as after a commit. Its errors
// are commit's.
func (s *Store) confirmFor(ctx context.Context, id string, events []encodedEvent) (f *finding, err error) {
	err = s.commit(ctx, func(ctx context.Context, conn *pgxpool.Conn) (err error) {
		rows, _ := conn.Query(ctx, findAndConfirm, []byte(id), hashesOf(events)) // the error is the rows' as well
		f, err = findingOf(rows)
		return err
	})
	return f, err
}

func hashesOf(events []encodedEvent) [][]byte {
	hashes := make([][]byte, len(events))
	for i, e := range events {
		hashes[i] = e.idHash
	}
	return hashes
}

func findingOf(rows pgx.Rows) (*finding, error) {
	var (
		c                    columns
		hash, digest, record []byte
		seq                  *int64
	)
	f := &finding{known: map[string]eventlog.Known{}}
	tag, err := pgx.ForEachRow(rows, slices.Concat([]any{&f.waits}, c.targets(), []any{&hash, &seq, &digest, &record}), func() error {
		if seq == nil {
			return nil
		}
		k, err := decodeKnown(eventlog.Seq(*seq), digest, record)
		f.known[string(hash)] = k
		return err
	})
	if err == nil && tag.RowsAffected() > 0 {
		f.session, err = c.session()
	}
	return f, err
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
