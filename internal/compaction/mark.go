package compaction

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/contextd/contextd/internal/assemble"
	"github.com/contextd/contextd/internal/lifecycle"
	eventlog "github.com/contextd/contextd/internal/log"
)

// marker is the native JSON of contextd's own Compaction events. It says why the compaction was made, and names the
// projection before it, which can be replayed, and the head of the log at that time.
type marker struct {
	AsOfSeq            eventlog.Seq `json:"as_of_seq"`
	ProjectionIDBefore string       `json:"projection_id_before,omitempty"`
	ArchivedMessages   int          `json:"archived_messages"`
	KeepLastTurns      uint32       `json:"keep_last_turns"`
	TargetTokens       uint64       `json:"target_tokens"`
	PolicyFingerprint  string       `json:"policy_fingerprint"`
}

// mark appends the Compaction event and returns its seq. On return the event is durable, and the compaction in
// effect. An ended ctx does not stop it.
func (c *Compactor) mark(ctx context.Context, r Request, done *assemble.Compacted) (eventlog.Seq, error) {
	native, err := json.Marshal(map[string]marker{"contextd": {
		AsOfSeq: done.AsOf, ProjectionIDBefore: done.Previous, ArchivedMessages: done.Archived,
		KeepLastTurns: r.KeepLastTurns, TargetTokens: r.TargetTokens, PolicyFingerprint: done.Fingerprint,
	}})
	if err != nil {
		return 0, fmt.Errorf("encode the marker of a compaction: %w", err)
	}
	body := *done.Event
	body.Trigger, body.Mode, body.Strategy, body.NativeJSON = r.Trigger, r.Mode, string(done.Strategy), string(native)
	return c.append(ctx, r.SessionID, r.Of, &body, assemble.CompactedEvent(r.Mode, r.Trigger, done.Collapsed, done.AsOf, done.Previous))
}

// append appends an event to the log at any head, together with its lifecycle event. It fails if the
// session was deleted: a plain append would create a session with that id again.
func (c *Compactor) append(ctx context.Context, sessionID string, of eventlog.Incarnation, body *eventlog.Compaction, news lifecycle.Event) (eventlog.Seq, error) {
	ctx = context.WithoutCancel(ctx)
	id, err := c.NewID()
	if err != nil {
		return 0, err
	}
	now := c.Clock()
	receipts, err := c.Journal.Append(ctx, lifecycle.Entry{SessionID: sessionID, Of: of, Events: []lifecycle.Event{news}},
		eventlog.Batch{Events: []eventlog.Event{{ID: id, Time: now, Body: body}}, Time: now})
	if err != nil {
		return 0, err
	}
	return receipts[0].Seq, nil
}

// Undone is the result of Undo.
type Undone struct {
	// Seqs are the events of the compactions that were undone, oldest first; none if none was in effect.
	Seqs []eventlog.Seq
	// Event is the event that records the undo; 0 if there is none.
	Event eventlog.Seq
}

// Undo takes back the compaction at event from and all later ones; 0 is the newest in effect. Durable on
// return.
func (c *Compactor) Undo(ctx context.Context, sessionID string, from eventlog.Seq) (Undone, error) {
	session, err := c.Store.Session(ctx, sessionID)
	if err != nil {
		return Undone{}, err
	}
	var out Undone
	out.Seqs, err = c.Engine.Undo(ctx, sessionID, from, func(ctx context.Context, body *eventlog.Compaction) error {
		body.Trigger, body.Mode = eventlog.TriggerManual, lifecycle.ModeManual
		var err error
		undone := lifecycle.Happened(lifecycle.CompactionUndone, lifecycle.AttributeFromSeq, lifecycle.Decimal(body.Decision.Undoes))
		out.Event, err = c.append(ctx, sessionID, session.Incarnation, body, undone)
		return err
	})
	if err != nil {
		return Undone{}, err
	}
	return out, nil
}
