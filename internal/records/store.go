package records

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"strconv"
	"strings"

	"github.com/contextd/contextd/internal/artifact"
	eventlog "github.com/contextd/contextd/internal/log"
)

// Prepare stores the caller's texts. It returns the record with its index entries, which the caller must
// store in one PutArtifacts. of, if not 0, is the incarnation of the session that is meant.
func (r Projection) Prepare(ctx context.Context, store eventlog.Artifacts, sessionID string, of eventlog.Incarnation) ([]eventlog.Artifact, error) {
	if err := putTexts(ctx, store, sessionID, of, r.Projection); err != nil {
		return nil, err
	}
	m, err := r.stored()
	if err != nil {
		return nil, fmt.Errorf("encode projection record: %w", err)
	}
	record, err := artifact.Encode(eventlog.Artifact{Kind: projectionKind, Seq: r.AsOf, ID: r.ID, Of: of, New: true}, m)
	if err != nil {
		return nil, err
	}
	entries, err := r.entries()
	return append(entries, record), err
}

// Get returns one record, or *eventlog.NotFoundError.
func Get(ctx context.Context, store eventlog.Artifacts, sessionID, projectionID string) (Projection, error) {
	asOf, ok := asOfInID(projectionID)
	if !ok {
		return Projection{}, &eventlog.NotFoundError{Kind: "projection", Name: projectionID}
	}
	a, err := store.Artifact(ctx, sessionID, projectionKind, asOf, projectionID)
	if eventlog.IsMissing(err, "artifact") {
		return Projection{}, &eventlog.NotFoundError{Kind: "projection", Name: projectionID}
	}
	if err != nil {
		return Projection{}, err
	}
	return projectionFrom(a)
}

// Projections yields the records of a session that the query selects; its Kind is filled in.
func Projections(ctx context.Context, store eventlog.Artifacts, sessionID string, q eventlog.ArtifactQuery) iter.Seq2[Projection, error] {
	q.Kind = projectionKind
	return func(yield func(Projection, error) bool) {
		for a, err := range store.Artifacts(ctx, sessionID, q) {
			var r Projection
			if err == nil {
				r, err = projectionFrom(a)
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// After yields the records of a session after the one with an id, oldest first; all if the id is empty.
func After(ctx context.Context, store eventlog.Artifacts, sessionID, id string) iter.Seq2[Projection, error] {
	return func(yield func(Projection, error) bool) {
		last := place(id)
		if id != "" && last == nil {
			yield(Projection{}, &eventlog.InvalidError{Field: "page_token", Reason: "is not from an earlier page"})
			return
		}
		Projections(ctx, store, sessionID, eventlog.ArtifactQuery{After: last})(yield)
	}
}

// Newest returns the id of the newest recorded projection: the one with the greatest as-of, and of those
// the one recorded last. It is empty if there is none.
func Newest(ctx context.Context, store eventlog.Artifacts, sessionID string) (string, error) {
	a, _, err := artifact.Newest(ctx, store, sessionID, projectionKind, 0)
	return a.ID, err
}

// Shown returns the event as of which contexts were recorded last, not after asOf, and the hash of what they showed,
// injections included: empty if they differ. If none was recorded, both are zero. Of contexts as of asOf itself only the
// newest counts, since nothing was written after them.
func Shown(ctx context.Context, store eventlog.Artifacts, sessionID string, asOf eventlog.Seq) (at eventlog.Seq, hash string, err error) {
	for r, err := range Projections(ctx, store, sessionID, eventlog.ArtifactQuery{To: asOf, Reverse: true}) {
		switch {
		case err != nil:
			return 0, "", err
		case at == 0:
			if at, hash = r.AsOf, r.Shows(); at == asOf {
				return at, hash, nil
			}
		case r.AsOf != at:
			return at, hash, nil
		case r.Shows() != hash:
			return at, "", nil
		}
	}
	return at, hash, nil
}

// NextID returns the id of the next projection at an event: "p", the event, and a number among the projections of
// that event, such as p12-0001. The number has four digits, and four more after 9999 and so on, so that newer ids
// sort after older ones.
func NextID(ctx context.Context, store eventlog.Artifacts, sessionID string, asOf eventlog.Seq) (string, error) {
	q := eventlog.ArtifactQuery{Kind: projectionKind, From: asOf, To: max(asOf, 1), Reverse: true}
	for a, err := range store.Artifacts(ctx, sessionID, q) {
		if err != nil {
			return "", err
		}
		if a.Seq != asOf {
			continue
		}
		digits := a.ID[strings.LastIndexByte(a.ID, '-')+1:]
		if strings.Trim(digits, "9") == "" {
			return a.ID + "0001", nil
		}
		n, err := strconv.ParseUint(digits, 10, 64)
		return fmt.Sprintf("p%d-%0*d", asOf, len(digits), n+1), err
	}
	return fmt.Sprintf("p%d-0001", asOf), nil
}

// asOfInID reads the event from a projection's id; false if it is no such id.
func asOfInID(projectionID string) (eventlog.Seq, bool) {
	var asOf, n uint64
	if c, err := fmt.Sscanf(projectionID, "p%d-%d", &asOf, &n); err != nil || c != 2 {
		return 0, false
	}
	return eventlog.Seq(asOf), fmt.Sprintf("p%s-%04d", strconv.FormatUint(asOf, 10), n) == projectionID
}

// place returns an artifact with the Seq and ID of a projection's artifacts; nil if the id is not a projection's.
func place(projectionID string) *eventlog.Artifact {
	asOf, ok := asOfInID(projectionID)
	if !ok {
		return nil
	}
	return &eventlog.Artifact{Seq: asOf, ID: projectionID}
}

// newer reports whether projection a was recorded after projection b, by their ids (see NextID).
func newer(a, b string) bool {
	atA, _ := asOfInID(a)
	atB, _ := asOfInID(b)
	return cmp.Or(cmp.Compare(atA, atB), cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) > 0
}
