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
	// Seq is the last event it was derived from. A fork shares its parent's
	// artifacts up to the fork's Seq as they were when it was made.
	Seq   Seq
	ID    string
	Value []byte
	// Of and New are conditions of putting it, and not kept. Of, if not 0, is the
	// incarnation that it was derived from: *NotFoundError if the id has none, or another by
	// now. New is set where nothing may be replaced: *ConflictError if the session has an
	// artifact with the key, its parents' included.
	Of  Incarnation
	New bool
}

// Size is what it counts for: its key and its value.
func (a Artifact) Size() uint64 { return uint64(len(a.Kind) + numberSize + len(a.ID) + len(a.Value)) }

// Name is the artifact's in errors.
func (a Artifact) Name() string { return a.Kind + " " + a.ID }

// AllOf reports whether each artifact may be kept next to the incarnation.
func AllOf(all []Artifact, i Incarnation) bool {
	return !slices.ContainsFunc(all, func(a Artifact) bool { return a.Of != 0 && a.Of != i })
}

// ArtifactQuery selects artifacts of one kind with From <= Seq <= To.
type ArtifactQuery struct {
	Kind     string
	From, To Seq // To 0 means no bound
	// Newest first instead of oldest first.
	Reverse bool
}

// ValidateArtifacts checks the keys of artifacts that are put together.
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
