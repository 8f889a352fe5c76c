package log

import (
	"fmt"
	"slices"
)

// Artifact is data derived from a log and kept next to it, so that deriving never
// moves the head.
type Artifact struct {
	// Kind, Seq and ID together are its key; artifacts of one kind are ordered by
	// Seq, then ID in byte order.
	Kind string
	// Seq is the last event that the artifact was derived from. A fork at seq n sees those of its parent's
	// artifacts with Seq <= n, as they were when the fork was made.
	Seq   Seq
	ID    string
	Value []byte
	// Of and New are conditions of the put; they are not stored. Of, if not 0, is the incarnation that the
	// artifact was derived from: *NotFoundError if the session id has another by now, or none. New forbids to
	// replace: *ConflictError if the session shows an artifact with the key already, its own or one of its
	// parents.
	Of  Incarnation
	New bool
}

// Size is what the artifact counts for in ArtifactBytes and quotas: its key and its value, in bytes.
func (a Artifact) Size() uint64 { return uint64(len(a.Kind) + numberSize + len(a.ID) + len(a.Value)) }

// Name is how errors name the artifact.
func (a Artifact) Name() string { return a.Kind + " " + a.ID }

// AllOf reports whether no artifact is meant for another incarnation than i.
func AllOf(all []Artifact, i Incarnation) bool {
	return !slices.ContainsFunc(all, func(a Artifact) bool { return a.Of != 0 && a.Of != i })
}

// ArtifactQuery selects artifacts of one kind with From <= Seq <= To.
type ArtifactQuery struct {
	Kind     string
	From, To Seq // To 0 means no bound
	// Newest first instead of oldest first.
	Reverse bool
	// After, if not nil, begins the answer after this artifact in the query's order, whether or not there is such
	// a one. Of it, Seq and ID count.
	After *Artifact
}

// ValidateArtifacts checks the keys of artifacts that are put in one call.
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
