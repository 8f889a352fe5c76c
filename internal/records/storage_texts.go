package records

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"google.golang.org/protobuf/proto"

	"github.com/contextd/contextd/internal/artifact"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/projection"
	storagev1 "github.com/contextd/contextd/proto/contextd/storage/v1"
)

// textsKind is the kind of artifact that holds a caller's texts. It is stored at event 0 under the hash of
// the texts, so records with the same texts share one artifact.
const textsKind = "caller_texts"

// textsVersion is the version of contextd.storage.v1.CallerTexts that is written.
const textsVersion = 1

// storedTexts are a caller's texts and the hash they are kept under; nil if there are none.
type storedTexts struct {
	message *storagev1.CallerTexts
	hash    []byte
}

func storeTexts(o projection.Options) storedTexts {
	m := &storagev1.CallerTexts{
		Summary: o.Summary, Roots: o.Roots, ActivePlan: o.ActivePlan, Scratchpad: o.Scratchpad,
		PendingToolArgs: o.PendingToolArgs, UnresolvedFindings: o.UnresolvedFindings, WriteBarrierRefs: o.WriteBarrierRefs,
	}
	if proto.Size(m) == 0 {
		return storedTexts{}
	}
	m.Version = textsVersion
	hash := sha256.Sum256(encode(m))
	return storedTexts{m, hash[:]}
}

// putTexts stores the caller's texts in the options next to the session's log, unless they are stored
// already; durable on return. of, if not 0, is the incarnation of the session that is meant.
func putTexts(ctx context.Context, store eventlog.Artifacts, sessionID string, of eventlog.Incarnation, o projection.Options) error {
	texts := storeTexts(o)
	if texts.message == nil {
		return nil
	}
	id := hex.EncodeToString(texts.hash)
	_, err := store.Artifact(ctx, sessionID, textsKind, 0, id)
	if !eventlog.IsMissing(err, "artifact") {
		return err
	}
	return artifact.Put(ctx, store, sessionID, eventlog.Artifact{Kind: textsKind, ID: id, Of: of}, texts.message)
}

// LoadTexts puts the caller's texts back into the options of a record that was read from the store. The
// projection can be computed again only after that.
func (r *Projection) LoadTexts(ctx context.Context, store eventlog.Artifacts, sessionID string) error {
	if r.Texts == "" {
		return nil
	}
	a, err := store.Artifact(ctx, sessionID, textsKind, 0, r.Texts)
	if err != nil {
		return err
	}
	m := &storagev1.CallerTexts{}
	if err := artifact.Decode(a, m, textsVersion); err != nil {
		return err
	}
	o := &r.Projection
	o.Summary, o.Roots, o.ActivePlan, o.Scratchpad = m.GetSummary(), m.GetRoots(), m.GetActivePlan(), m.GetScratchpad()
	o.PendingToolArgs, o.UnresolvedFindings, o.WriteBarrierRefs = m.GetPendingToolArgs(), m.GetUnresolvedFindings(), m.GetWriteBarrierRefs()
	return nil
}

func storeOptions(o projection.Options, texts []byte) *storagev1.ProjectionOptions {
	return &storagev1.ProjectionOptions{
		Policy: o.Name, IgnoreSignatures: o.IgnoreSignatures, RawFallback: o.RawFallback, KeepLast: o.KeepLast,
		RootWindow: o.RootWindow, MinChars: o.MinChars, ClearAtLeastTokens: o.ClearAtLeastTokens,
		RequireWriteBarrier: o.RequireWriteBarrier, Expression: o.Expression, TextsHash: texts,
		Scrub: o.Scrub, ScrubRules: o.ScrubRules,
	}
}

func readOptions(m *storagev1.ProjectionOptions) projection.Options {
	if m == nil {
		return projection.Options{}
	}
	return projection.Options{
		Name: m.GetPolicy(), IgnoreSignatures: m.GetIgnoreSignatures(), RawFallback: m.GetRawFallback(), KeepLast: m.GetKeepLast(),
		RootWindow: m.RootWindow, MinChars: m.MinChars, ClearAtLeastTokens: m.ClearAtLeastTokens,
		RequireWriteBarrier: m.GetRequireWriteBarrier(), Expression: m.GetExpression(),
		Scrub: m.GetScrub(), ScrubRules: m.GetScrubRules(),
	}
}
