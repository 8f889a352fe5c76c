package log

import (
	"fmt"
	"slices"
)

// Artifact is data derived from a log. It is stored next to the log, not in it, so that storing it does not move the
// head.
type Artifact struct {
	// Kind, Seq and ID together are the key. Artifacts of one kind are ordered by Seq, then by ID in byte order.
	Kind string
	// Seq is the last event that the artifact was derived from. A fork at seq n sees those of its parent's
	// artifacts with Seq <= n, as they were when the fork was made.
	Seq   Seq
	ID    string
	Value []byte
	// Of and New are conditions of a put; they are not stored. Of, if not 0, is the incarnation that the artifact was
	// derived from: *NotFoundError if the session is another one, or does not exist. New forbids the put to replace
	// an artifact: *ConflictError if the session, which also shows artifacts of its parents, has the key already.
	Of  Incarnation
	New bool
}

// Size returns the bytes that the artifact counts for in ArtifactBytes and quotas: those of its key and value.
func (a Artifact) Size() uint64 { return uint64(len(a.Kind) + numberSize + len(a.ID) + len(a.Value)) }

// Name returns the artifact's name in errors.
func (a Artifact) Name() string { return a.Kind + " " + a.ID }

// AllOf reports whether the condition Of of all artifacts permits incarnation i.
func AllOf(all []Artifact, i Incarnation) bool {
	return !slices.ContainsFunc(all, func(a Artifact) bool { return a.Of != 0 && a.Of != i })
}

// ArtifactQuery selects artifacts of one kind with From <= Seq <= To.
type ArtifactQuery struct {
	Kind     string
	From, To Seq // To 0 means no bound
	// Reverse yields the newest first instead of the oldest.
	Reverse bool
	// After, if not nil, is the artifact after which the answer begins, in the query's order. It need not exist; only
	// its Seq and ID are used.
	After *Artifact
}

// ValidateArtifacts checks the keys of the artifacts of one put.
func ValidateArtifacts(all []Artifact) error {
	type key struct {
		kind string
		seq  Seq
		id   string
	}
	seen := make(map[key]bool, len(all))
	for _, a := range all {
		k := key{a.Kind, a.Seq, a.ID}
		switch {
		case a.Kind == "":
			return &InvalidError{"artifact.kind", "must not be empty"}
		case seen[k]:
			return &InvalidError{"artifact.id", fmt.Sprintf("%q is put twice at once", a.ID)}
		}
		seen[k] = true
	}
	return nil
}
