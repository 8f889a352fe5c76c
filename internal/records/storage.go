package records

import (
	"encoding/hex"
	"fmt"
	"time"

	"github.com/contextd/contextd/internal/artifact"
	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
	storagev1 "github.com/contextd/contextd/proto/contextd/storage/v1"
)

// projectionKind is the kind of artifact that holds records of projections. Each is stored at its AsOf.
const projectionKind = "projection"

// projectionVersion is the version of contextd.storage.v1.Projection that is written.
const projectionVersion = 1

// stored encodes the record. It has the hash of the caller's texts in their place.
func (r Projection) stored() (*storagev1.Projection, error) {
	hash, err := hashSum(r.PrefixHash)
	if err != nil {
		return nil, fmt.Errorf("prefix hash: %w", err)
	}
	context, err := hashSum(r.ContextHash)
	if err != nil {
		return nil, fmt.Errorf("context hash: %w", err)
	}
	places, edits := storePointers(r.Pointers)
	return &storagev1.Projection{
		Version: projectionVersion, Reason: r.Reason, Fingerprint: r.Fingerprint, PrefixHash: hash,
		TimeSeconds: r.Time.Unix(), TimeNanos: int32(r.Time.Nanosecond()), IdempotencyKey: r.IdempotencyKey,
		MessageCount: uint32(r.MessageCount), Tokens: r.Tokens, InjectedTokens: r.Injected,
		ReclaimedTokens: r.ReclaimedTokens, ReclaimedChars: r.ReclaimedChars,
		Kept: storeRanges(r.Kept), Dropped: storeRanges(r.Dropped), Redacted: storeRanges(r.Redacted),
		Pointers: places, Edits: edits, Steps: storeSteps(r.Steps),
		Before: storeReductionState(r.Before), After: storeReductionState(r.After),
		Reduction: storeReduction(r.Reduction), Budget: storeBudget(r.Budget), Ask: storeAsk(r.Ask),
		Summaries: r.Summaries, SummaryVersion: r.SummaryVersion,
		Projection: storeOptions(r.Projection, storeTexts(r.Projection).hash), ShownBefore: storeState(r.ShownBefore), ShownAfter: storeState(r.ShownAfter),
		RootsConsulted: r.RootsConsulted, SafetyBlocked: r.SafetyBlocked, Reverted: r.Reverted,
		RequestDigest: r.RequestDigest, Previous: r.Previous,
		RawTokens: r.Raw, TierTokens: storeTiers(r.Tiers), Shared: storeShared(r.Shared),
		RemindersTurns: r.RemindersTurns, RemindersCollapsedThrough: uint64(r.RemindersCollapsed),
		ContextHash: context, ContextMessageCount: uint32(r.ContextMessages), ContextPrefixMessages: uint32(r.PrefixMessages),
	}, nil
}

// projectionFrom decodes the record in an artifact. Its options lack the caller's texts, which LoadTexts
// adds. It returns *artifact.VersionError or *eventlog.CorruptError.
func projectionFrom(a eventlog.Artifact) (Projection, error) {
	m := &storagev1.Projection{}
	if err := artifact.Decode(a, m, projectionVersion); err != nil {
		return Projection{}, err
	}
	in := &reader{what: a.Name()}
	r := Projection{
		ID: a.ID, AsOf: a.Seq, Reason: m.GetReason(), Fingerprint: m.GetFingerprint(),
		PrefixHash: HashName(m.GetPrefixHash()),
		Time:       time.Unix(m.GetTimeSeconds(), int64(m.GetTimeNanos())).UTC(), IdempotencyKey: m.GetIdempotencyKey(),
		MessageCount: int(m.GetMessageCount()), Tokens: m.GetTokens(), Injected: m.GetInjectedTokens(),
		ReclaimedTokens: m.GetReclaimedTokens(), ReclaimedChars: m.GetReclaimedChars(),
		Kept: in.ranges(m.GetKept()), Dropped: in.ranges(m.GetDropped()), Redacted: in.ranges(m.GetRedacted()),
		Pointers: in.pointers(m.GetPointers(), m.GetEdits()), Steps: readSteps(m.GetSteps()),
		Before: in.reduction(m.GetBefore()), After: in.reduction(m.GetAfter()),
		Reduction: readReduction(m.GetReduction()), Budget: readBudget(m.GetBudget()), Ask: readAsk(m.GetAsk()),
		Summaries: m.GetSummaries(), SummaryVersion: m.GetSummaryVersion(),
		Projection: readOptions(m.GetProjection()), ShownBefore: in.state(m.GetShownBefore()), ShownAfter: in.state(m.GetShownAfter()),
		RootsConsulted: m.GetRootsConsulted(), SafetyBlocked: m.GetSafetyBlocked(), Reverted: m.GetReverted(),
		RequestDigest: m.GetRequestDigest(), Previous: m.GetPrevious(),
		Raw: m.GetRawTokens(), Tiers: readTiers(m.GetTierTokens()), Shared: readShared(m.GetShared()),
		RemindersTurns: m.GetRemindersTurns(), RemindersCollapsed: eventlog.Seq(m.GetRemindersCollapsedThrough()),
		ContextMessages: int(m.GetContextMessageCount()), PrefixMessages: int(m.GetContextPrefixMessages()),
	}
	if len(m.GetContextHash()) > 0 {
		r.ContextHash = HashName(m.GetContextHash())
	}
	r.Policy = r.Projection.PolicyName()
	r.Texts = hex.EncodeToString(m.GetProjection().GetTextsHash())
	return r, in.err
}

func storeTiers(tiers map[budget.Tier]uint64) (out []uint64) {
	if tiers == nil {
		return nil
	}
	for _, tier := range budget.Tiers() {
		out = append(out, tiers[tier])
	}
	return out
}

func readTiers(tokens []uint64) map[budget.Tier]uint64 {
	if len(tokens) == 0 {
		return nil
	}
	out := map[budget.Tier]uint64{}
	for i, tier := range budget.Tiers() {
		if i < len(tokens) {
			out[tier] = tokens[i]
		}
	}
	return out
}

func storeShared(s *Shared) *storagev1.SharedPrefix {
	if s == nil {
		return nil
	}
	return &storagev1.SharedPrefix{Messages: uint32(s.Messages), Tokens: s.Tokens, BrokenBy: s.BrokenBy}
}

func readShared(s *storagev1.SharedPrefix) *Shared {
	if s == nil {
		return nil
	}
	return &Shared{Messages: int(s.GetMessages()), Tokens: s.GetTokens(), BrokenBy: s.GetBrokenBy()}
}

func storeSteps(all []reduce.Step) []*storagev1.Step {
	var out []*storagev1.Step
	for _, s := range all {
		out = append(out, &storagev1.Step{
			Reducer: s.Reducer, TokensBefore: s.TokensBefore, TokensAfter: s.TokensAfter, Touched: uint32(s.Touched), Note: s.Note,
		})
	}
	return out
}

func readSteps(all []*storagev1.Step) []reduce.Step {
	var out []reduce.Step
	for _, s := range all {
		out = append(out, reduce.Step{
			Reducer: s.GetReducer(), TokensBefore: s.GetTokensBefore(), TokensAfter: s.GetTokensAfter(), Touched: int(s.GetTouched()), Note: s.GetNote(),
		})
	}
	return out
}
