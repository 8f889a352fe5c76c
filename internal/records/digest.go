package records

import (
	"context"

	"github.com/contextd/contextd/internal/artifact"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
	storagev1 "github.com/contextd/contextd/proto/contextd/storage/v1"
)

const digestVersion = 1

// digestKind is the kind of the digests that were shown under a fingerprint, each at the
// event that the log was read up to when it was written.
func digestKind(fingerprint string) string { return "digest/" + fingerprint }

// DigestAt returns the newest digest that was kept under a fingerprint up to an event, and the
// zero value if there is none that can be read: it can be written again.
func DigestAt(ctx context.Context, store eventlog.Artifacts, sessionID, fingerprint string, to eventlog.Seq) (reduce.Written, error) {
	a, ok, err := artifact.Newest(ctx, store, sessionID, digestKind(fingerprint), to)
	if !ok || err != nil {
		return reduce.Written{}, err
	}
	return digestFrom(a), nil
}

// digestFrom reads a digest; the zero value where that is not possible.
func digestFrom(a eventlog.Artifact) reduce.Written {
	m := &storagev1.Digest{}
	w := reduce.Written{AsOf: a.Seq}
	if artifact.Decode(a, m, digestVersion) != nil || copy(w.Sum[:], m.GetDependsOn()) != len(w.Sum) {
		return reduce.Written{}
	}
	w.Text, w.Tokens, w.SummaryTokens = string(m.GetText()), m.GetTokens(), m.GetSummaryTokens()
	return w
}

// DigestArtifact is a digest as it is stored, to be put with the record that shows it first.
func DigestArtifact(fingerprint string, w reduce.Written) (eventlog.Artifact, error) {
	return artifact.Encode(eventlog.Artifact{Kind: digestKind(fingerprint), Seq: w.AsOf, ID: newestID},
		&storagev1.Digest{Version: digestVersion, DependsOn: w.Sum[:], Text: []byte(w.Text), Tokens: w.Tokens, SummaryTokens: w.SummaryTokens})
}
