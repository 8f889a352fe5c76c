package records

import (
	"context"

	"github.com/contextd/contextd/internal/artifact"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
	storagev1 "github.com/contextd/contextd/proto/contextd/storage/v1"
)

const digestVersion = 1

// digestKind returns the kind of digests shown under a fingerprint. Each is stored at the head for which it was
// made.
func digestKind(fingerprint string) string { return "digest/" + fingerprint }

// DigestAt returns the newest digest under a fingerprint up to an event. It is zero if there is none or it
// cannot be decoded; it can be computed from the log then.
func DigestAt(ctx context.Context, store eventlog.Artifacts, sessionID, fingerprint string, to eventlog.Seq) (reduce.Written, error) {
	a, ok, err := artifact.Newest(ctx, store, sessionID, digestKind(fingerprint), to)
	if !ok || err != nil {
		return reduce.Written{}, err
	}
	return digestFrom(a), nil
}

// digestFrom decodes a digest; zero if that fails.
func digestFrom(a eventlog.Artifact) reduce.Written {
	m := &storagev1.Digest{}
	w := reduce.Written{AsOf: a.Seq}
	if artifact.Decode(a, m, digestVersion) != nil || copy(w.Sum[:], m.GetDependsOn()) != len(w.Sum) {
		return reduce.Written{}
	}
	w.Text, w.Tokens, w.SummaryTokens = string(m.GetText()), m.GetTokens(), m.GetSummaryTokens()
	return w
}

// DigestArtifact encodes a digest. It is to be stored with the first record that shows it.
func DigestArtifact(fingerprint string, w reduce.Written) (eventlog.Artifact, error) {
	return artifact.Encode(eventlog.Artifact{Kind: digestKind(fingerprint), Seq: w.AsOf, ID: newestID},
		&storagev1.Digest{Version: digestVersion, DependsOn: w.Sum[:], Text: []byte(w.Text), Tokens: w.Tokens, SummaryTokens: w.SummaryTokens})
}
