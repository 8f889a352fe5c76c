package records

import (
	"context"
	"strings"

	"github.com/contextd/contextd/internal/artifact"
	eventlog "github.com/contextd/contextd/internal/log"
	storagev1 "github.com/contextd/contextd/proto/contextd/storage/v1"
)

// Shadow is what a policy would have sent in the place of a projection.
type Shadow struct {
	// Policy is its name.
	Policy string
	// Tokens and Messages are those of its context, and StableTokens how many of the tokens at
	// its beginning are as in the shadow before it.
	Tokens       uint64
	Messages     int
	StableTokens uint64
	// BrokenBy is the reducer that changed the prefix of the shadow before it; empty if none did.
	BrokenBy string
	// OverBudget is set where it would have been refused; the numbers are 0 then.
	OverBudget bool
}

const (
	// shadowKind is the kind of shadows, each under the id and the last event of its projection.
	shadowKind    = "shadow"
	shadowVersion = 1
)

// ShadowKind is the kind of what a shadow decides in the place of what is decided under a kind, so
// that neither goes by the other. What is the session's own has one kind for both.
func ShadowKind(kind string) string {
	of, _, _ := strings.Cut(kind, "/")
	switch of + "/" {
	case projectionKind + "/", decisionsKind(""), streamKind(""), digestKind(""), checkpointKind(""):
		return shadowKind + "/" + kind
	default:
		return kind
	}
}

// ShadowArtifact is the shadow of a projection as it is stored.
func ShadowArtifact(asOf eventlog.Seq, projectionID string, s Shadow) (eventlog.Artifact, error) {
	return artifact.Encode(eventlog.Artifact{Kind: shadowKind, Seq: asOf, ID: projectionID}, &storagev1.Shadow{
		Version: shadowVersion, Policy: s.Policy, Tokens: s.Tokens, Messages: uint32(s.Messages), StableTokens: s.StableTokens,
		BrokenBy: s.BrokenBy, OverBudget: s.OverBudget,
	})
}

// Shadows are those of the projections from one to another event, by the ids of these. It returns
// *artifact.VersionError or *eventlog.CorruptError.
func Shadows(ctx context.Context, store eventlog.Artifacts, sessionID string, from, to eventlog.Seq) (map[string]Shadow, error) {
	out := map[string]Shadow{}
	for a, err := range store.Artifacts(ctx, sessionID, eventlog.ArtifactQuery{Kind: shadowKind, From: from, To: max(to, 1)}) {
		if err != nil {
			return nil, err
		}
		m := &storagev1.Shadow{}
		if err := artifact.Decode(a, m, shadowVersion); err != nil {
			return nil, err
		}
		out[a.ID] = Shadow{
			Policy: m.GetPolicy(), Tokens: m.GetTokens(), Messages: int(m.GetMessages()), StableTokens: m.GetStableTokens(),
			BrokenBy: m.GetBrokenBy(), OverBudget: m.GetOverBudget(),
		}
	}
	return out, nil
}
