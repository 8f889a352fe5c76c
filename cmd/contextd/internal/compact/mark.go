package compact

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/contextd/contextd/cmd/contextd/internal/assemble"
	eventlog "github.com/contextd/contextd/internal/log"
)

// marker is what a Compaction event of contextd's own holds beside the common
// fields, as its native JSON. The state before is told by reference: the projection
// before, which can be replayed, and the event up to which the log stood.
type marker struct {
	AsOfSeq              eventlog.Seq `json:"as_of_seq"`
	CollapsedThroughSeq  eventlog.Seq `json:"collapsed_through_seq,omitempty"`
	ProjectionIDBefore   string       `json:"projection_id_before,omitempty"`
	ProjectionIDAfter    string       `json:"projection_id_after"`
	ArchivedMessages     int          `json:"archived_messages"`
	SummaryID            string       `json:"summary_id,omitempty"`
	KeepLastTurns        uint32       `json:"keep_last_turns"`
	TargetTokens         uint64       `json:"target_tokens"`
	PolicyFingerprint    string       `json:"policy_fingerprint"`
	PrefixHashAfterwards string       `json:"prefix_hash_after"`
}

// mark appends the Compaction event and returns its seq. It is durable on return. What
// was done is marked also if ctx has ended meanwhile.
func (c *Compactor) mark(ctx context.Context, r Request, done *assemble.Compacted) (eventlog.Seq, error) {
	m := marker{
		AsOfSeq: done.Projection.AsOf, CollapsedThroughSeq: done.Projection.After.CollapsedThrough,
		ProjectionIDBefore: done.Previous, ProjectionIDAfter: done.Projection.ID, ArchivedMessages: done.Archived,
		KeepLastTurns: r.KeepLastTurns, TargetTokens: r.TargetTokens,
		PolicyFingerprint: done.Projection.Fingerprint, PrefixHashAfterwards: done.Projection.PrefixHash,
	}
	body := &eventlog.Compaction{
		Trigger: r.Trigger, Mode: r.Mode, Strategy: string(done.Strategy), KeptEventIDs: done.Kept,
		PreTokens: &done.Before.Tokens, PostTokens: &done.After.Tokens,
	}
	if done.Summary != nil {
		m.SummaryID, body.Summary = done.Summary.ID, done.Summary.Text
	}
	native, err := json.Marshal(map[string]marker{"contextd": m})
	if err != nil {
		return 0, fmt.Errorf("encode the marker of a compaction: %w", err)
	}
	body.NativeJSON = string(native)
	id, err := c.NewID()
	if err != nil {
		return 0, err
	}
	now := c.Clock()
	return c.append(context.WithoutCancel(ctx), r, eventlog.Event{ID: id, Time: now, Body: body})
}

// append puts an event after all others of the session's log, unless the session was
// deleted: an append alone would make it anew.
func (c *Compactor) append(ctx context.Context, r Request, event eventlog.Event) (eventlog.Seq, error) {
	batch := eventlog.Batch{Events: []eventlog.Event{event}, Time: event.Time, Of: &r.Of}
	commit, err := c.Store.Append(ctx, r.SessionID, batch)
	if err != nil {
		return 0, err
	}
	receipts, err := commit.Wait(ctx)
	if err != nil {
		return 0, err
	}
	return receipts[0].Seq, nil
}
