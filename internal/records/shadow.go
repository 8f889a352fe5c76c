package records

import (
	"context"
	"iter"
	"strings"

	"github.com/contextd/contextd/internal/artifact"
	eventlog "github.com/contextd/contextd/internal/log"
	storagev1 "github.com/contextd/contextd/proto/contextd/storage/v1"
)

// Shadow says what a policy would have sent instead of a projection.
type Shadow struct {
	// Policy is the name of the shadow policy.
	Policy string
	// Tokens and Messages are the size of its context. StableTokens is the size of the prefix that it
	// shares with the shadow before it.
	Tokens       uint64
	Messages     int
	StableTokens uint64
	// BrokenBy is the reducer that changed the prefix of the shadow before it; empty if none did.
	BrokenBy string
	// OverBudget is set if the policy would have refused the context; then the numbers are 0.
	OverBudget bool
}

const (
	// shadowKind is the kind of shadows. Each has the id and the last event of its projection.
	shadowKind    = "shadow"
	shadowVersion = 1
)

// ShadowKind maps an artifact kind to the one that shadows use for it, so that shadows and contexts do not
// use each other's decisions. Kinds that do not depend on decisions are shared.
func ShadowKind(kind string) string {
	of, _, _ := strings.Cut(kind, "/")
	switch of + "/" {
	case projectionKind + "/", decisionsKind(""), streamKind(""), digestKind(""), checkpointKind(""):
		return shadowKind + "/" + kind
	default:
		return kind
	}
}

// ShadowArtifact encodes the shadow of a projection.
func ShadowArtifact(asOf eventlog.Seq, projectionID string, s Shadow) (eventlog.Artifact, error) {
	return artifact.Encode(eventlog.Artifact{Kind: shadowKind, Seq: asOf, ID: projectionID}, &storagev1.Shadow{
		Version: shadowVersion, Policy: s.Policy, Tokens: s.Tokens, Messages: uint32(s.Messages), StableTokens: s.StableTokens,
		BrokenBy: s.BrokenBy, OverBudget: s.OverBudget,
	})
}

// ShadowOf returns the shadow of a projection; nil if it has none. The error may be *artifact.VersionError or
// *eventlog.CorruptError.
func ShadowOf(ctx context.Context, store eventlog.Artifacts, sessionID string, asOf eventlog.Seq, projectionID string) (*Shadow, error) {
	a, err := store.Artifact(ctx, sessionID, shadowKind, asOf, projectionID)
	if eventlog.IsMissing(err, "artifact") {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return decodeShadow(a)
}

// Shadows returns a function that does the same as ShadowOf, for projections in the order of After and after the id
// after. It reads the shadows only once. The caller must call stop in the end.
func Shadows(ctx context.Context, store eventlog.Artifacts, sessionID, after string) (of func(Projection) (*Shadow, error), stop func()) {
	var a eventlog.Artifact
	var err error
	var next func() (eventlog.Artifact, error, bool)
	more, end := false, func() {}
	return func(r Projection) (*Shadow, error) {
		if next == nil {
			next, end = iter.Pull2(store.Artifacts(ctx, sessionID, eventlog.ArtifactQuery{Kind: shadowKind, From: r.AsOf, After: place(after)}))
			a, err, more = next()
		}
		for more && err == nil && (a.Seq < r.AsOf || a.Seq == r.AsOf && a.ID < r.ID) {
			a, err, more = next()
		}
		if !more || err != nil || a.Seq != r.AsOf || a.ID != r.ID {
			return nil, err
		}
		return decodeShadow(a)
	}, func() { end() }
}

func decodeShadow(a eventlog.Artifact) (*Shadow, error) {
	m := &storagev1.Shadow{}
	if err := artifact.Decode(a, m, shadowVersion); err != nil {
		return nil, err
	}
	return &Shadow{
		Policy: m.GetPolicy(), Tokens: m.GetTokens(), Messages: int(m.GetMessages()), StableTokens: m.GetStableTokens(),
		BrokenBy: m.GetBrokenBy(), OverBudget: m.GetOverBudget(),
	}, nil
}
