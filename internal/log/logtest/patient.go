package logtest

import (
	"context"
	"errors"

	eventlog "github.com/contextd/contextd/internal/log"
)

// patient wraps a store with several writers: it repeats a call if another writer came first, as callers should.
type patient struct{ eventlog.Store }

// attempts bounds the repetitions, because an artifact with New always conflicts.
const attempts = 100

func again[T any](call func() (T, error)) (out T, err error) {
	for range attempts {
		var conflict *eventlog.ConflictError
		if out, err = call(); !errors.As(err, &conflict) {
			break
		}
	}
	return out, err
}

func (p patient) CreateSession(ctx context.Context, s eventlog.Session) (eventlog.Session, error) {
	return again(func() (eventlog.Session, error) { return p.Store.CreateSession(ctx, s) })
}

func (p patient) Fork(ctx context.Context, r eventlog.ForkRequest) (eventlog.Session, error) {
	return again(func() (eventlog.Session, error) { return p.Store.Fork(ctx, r) })
}

func (p patient) DeleteSession(ctx context.Context, id string, of eventlog.Incarnation, head *eventlog.Seq) error {
	_, err := again(func() (any, error) { return nil, p.Store.DeleteSession(ctx, id, of, head) })
	return err
}

func (p patient) Append(ctx context.Context, id string, b eventlog.Batch) (eventlog.Commit, error) {
	return again(func() (eventlog.Commit, error) { return p.Store.Append(ctx, id, b) })
}

func (p patient) PutArtifacts(ctx context.Context, id string, all ...eventlog.Artifact) error {
	_, err := again(func() (any, error) { return nil, p.Store.PutArtifacts(ctx, id, all...) })
	return err
}
