package records

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/contextd/contextd/internal/artifact"
	eventlog "github.com/contextd/contextd/internal/log"
)

// What an idempotency key may belong to.
const (
	KeyedProjection = "projection"
	KeyedCall       = "call"
)

// KeyConflictError says that an idempotency key was used before with a different request.
type KeyConflictError struct {
	Key string
	// Kind and Name are what the other request led to: KeyedProjection and an id, or KeyedCall
	// and a number.
	Kind, Name string
}

func (e *KeyConflictError) Error() string {
	return fmt.Sprintf("idempotency_key %q belongs to %s %s, which was made of another request", e.Key, e.Kind, e.Name)
}

// keyKind returns the kind of the index entry of an idempotency key.
func keyKind(kind, key string) string {
	sum := sha256.Sum256([]byte(key))
	return kind + "_of_key/" + hex.EncodeToString(sum[:])
}

// Repeats returns the call that was reported before with c's idempotency key; ok is false if there is none.
// *KeyConflictError if that call differs from c.
func (c Call) Repeats(ctx context.Context, store eventlog.Artifacts) (m ModelCall, ok bool, err error) {
	if c.IdempotencyKey == "" {
		return m, false, nil
	}
	a, ok, err := artifact.Newest(ctx, store, c.SessionID, keyKind(KeyedCall, c.IdempotencyKey), 0)
	if !ok || err != nil {
		return m, false, err
	}
	if m, err = decodeCall(c.SessionID, a); err != nil {
		return m, false, err
	}
	m.IdempotencyKey, c.Model = c.IdempotencyKey, cmp.Or(c.Model, m.BudgetModel)
	if c != m.Call {
		return m, false, &KeyConflictError{c.IdempotencyKey, KeyedCall, fmt.Sprint(m.Number)}
	}
	return m, true, nil
}
