package records

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/contextd/contextd/internal/artifact"
	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	storagev1 "github.com/contextd/contextd/proto/contextd/storage/v1"
)

const (
	// callKind is the kind of artifact that holds calls.
	callKind = "call"
	// callVersion is the version of contextd.storage.v1.ModelCall that is written.
	callVersion = 1
)

// put stores the call at an event, with its index entries; durable on return.
func (c ModelCall) put(ctx context.Context, store eventlog.Artifacts, of eventlog.Incarnation, at eventlog.Seq) error {
	a, err := artifact.Encode(eventlog.Artifact{Kind: callKind, Seq: at, ID: callID(c.Number), Of: of}, c.stored())
	if err != nil {
		return err
	}
	entries := c.entries(a)
	if c.IdempotencyKey != "" {
		keyed := a
		keyed.Kind = keyKind(KeyedCall, c.IdempotencyKey)
		entries = append(entries, keyed)
	}
	a.New = true
	return store.PutArtifacts(ctx, c.SessionID, append(entries, a)...)
}

// modelKind returns the kind of copies of calls that lastCall looks for; an empty tokenizer matches any.
func modelKind(model, tokenizer string) string { return "call_of_model/" + tokenizer + "/" + model }

// entries returns the index entries of a call that is stored as a: copies of it under each kind that it is
// looked up by. Of several calls at one event, the newest has the greatest id.
func (c ModelCall) entries(a eventlog.Artifact) []eventlog.Artifact {
	var out []eventlog.Artifact
	for _, model := range slices.Compact([]string{c.BudgetModel, c.Model}) {
		for _, tokenizer := range slices.Compact([]string{"", c.Tokenizer}) {
			a.Kind = modelKind(model, tokenizer)
			out = append(out, a)
		}
	}
	return out
}

func (c ModelCall) stored() *storagev1.ModelCall {
	return &storagev1.ModelCall{
		Version: callVersion, ProjectionId: c.ProjectionID, Model: c.Model,
		InputTokens: c.InputTokens, CacheReadTokens: c.CacheReadTokens, CacheWriteTokens: c.CacheWriteTokens, OutputTokens: c.OutputTokens,
		StopReason: c.StopReason, Rejected: c.Rejected,
		TimeSeconds: c.Time.Unix(), TimeNanos: int32(c.Time.Nanosecond()),
		EstimatedTokens: c.EstimatedTokens, Tokenizer: c.Tokenizer, BudgetModel: c.BudgetModel, Fingerprint: c.Fingerprint,
		SummaryId: c.InForce.SummaryID, SummaryVersion: c.InForce.SummaryVersion,
		CollapsedThrough: uint64(c.InForce.CollapsedThrough), EvictedAsOf: uint64(c.InForce.EvictedAsOf), After: c.After,
		Calibration: &storagev1.Calibration{Average: c.Calibration.Average, Floor: c.Calibration.Floor, Calls: c.Calibration.Calls},
	}
}

// decodeCall decodes a call. It gets the id of the session that it was found in, which may be a fork of the
// one that it was reported for.
func decodeCall(sessionID string, a eventlog.Artifact) (ModelCall, error) {
	m := &storagev1.ModelCall{}
	if err := artifact.Decode(a, m, callVersion); err != nil {
		return ModelCall{}, err
	}
	number, err := numberOf(a.ID)
	return ModelCall{
		Call: Call{
			SessionID: sessionID, ProjectionID: m.GetProjectionId(), Model: m.GetModel(),
			InputTokens: m.GetInputTokens(), CacheReadTokens: m.GetCacheReadTokens(), CacheWriteTokens: m.GetCacheWriteTokens(), OutputTokens: m.GetOutputTokens(),
			StopReason: m.GetStopReason(), Rejected: m.GetRejected(),
		},
		Number: number, Time: time.Unix(m.GetTimeSeconds(), int64(m.GetTimeNanos())).UTC(),
		EstimatedTokens: m.GetEstimatedTokens(), Tokenizer: m.GetTokenizer(), BudgetModel: m.GetBudgetModel(), Fingerprint: m.GetFingerprint(),
		InForce: InForce{
			SummaryID: m.GetSummaryId(), SummaryVersion: m.GetSummaryVersion(),
			CollapsedThrough: eventlog.Seq(m.GetCollapsedThrough()), EvictedAsOf: eventlog.Seq(m.GetEvictedAsOf()),
		},
		After: m.GetAfter(),
		Calibration: budget.Calibration{
			Average: m.GetCalibration().GetAverage(), Floor: m.GetCalibration().GetFloor(), Calls: m.GetCalibration().GetCalls(),
		},
	}, err
}

func callID(number uint32) string { return fmt.Sprintf("c%010d", number) }

// numberOf reads the number out of the id of a call's artifact.
func numberOf(id string) (uint32, error) {
	n, err := strconv.ParseUint(id[min(len(id), 1):], 10, 32)
	if err != nil || callID(uint32(n)) != id {
		return 0, fmt.Errorf("model call has the id %q", id)
	}
	return uint32(n), nil
}
