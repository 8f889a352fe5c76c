package assemble

import (
	"context"
	"maps"

	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/fair"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/projection"
	"github.com/contextd/contextd/internal/records"
	"github.com/contextd/contextd/internal/reduce"
)

// withReminders adds the tokens of the reminders shown after a view to those of the view, by tier.
func withReminders(ofView map[budget.Tier]uint64, shown []reduce.Reminder) map[budget.Tier]uint64 {
	tiers := maps.Clone(ofView)
	for i := range shown {
		tiers[budget.TierDialogue] += shown[i].Tokens
	}
	return tiers
}

// Recorded returns the budget report of a stored record. Raw is 0 and Tiers is empty where the record has none.
func Recorded(r records.Projection) BudgetReport { return reportOf(r.Budget, r.Tokens, r.Raw, r.Tiers) }

// reportOf scales counted tokens to those that the provider is expected to count (Budget.Real).
func reportOf(b budget.Budget, used, raw uint64, counted map[budget.Tier]uint64) BudgetReport {
	tiers := make(map[budget.Tier]uint64, len(counted))
	for tier, tokens := range counted {
		tiers[tier] = b.Real(tokens)
	}
	return BudgetReport{
		State: b.StateOf(used), Target: b.Real(b.Target), Raw: b.Real(raw), Projected: b.Real(used),
		Tiers: tiers, Tokenizer: b.Tokenizer, Calibration: b.Factor(),
	}
}

// Estimate reports how much of the budget of the last assembly would be used with the events appended since, if none
// of them is reduced. appended are events that were just appended to incarnation of, with their Seq and Turn, oldest
// first; the session keeps references to them. Estimate never waits. It returns false while another call uses the
// session, and if it would have to read more than a few events, such as before the first assembly after the daemon's
// start.
func (e *Engine) Estimate(ctx context.Context, sessionID string, of eventlog.Incarnation, appended []eventlog.Event) (BudgetReport, bool, error) {
	s, release, ok := e.sessions.tryAcquire(sessionID)
	if !ok {
		return BudgetReport{}, false, nil
	}
	defer release()
	if s.report == nil {
		return BudgetReport{}, false, nil
	}
	last := *s.report
	r := last.record
	gauge, err := e.gauge(r.Budget)
	if err != nil {
		return BudgetReport{}, false, err
	}
	conv, ok := s.grown(gauge, r.Projection, of, appended)
	if !ok {
		if ready, err := s.atHand(ctx, e.store, gauge, r.Projection); err != nil || !ready {
			return BudgetReport{}, false, err
		}
		if conv, err = s.shown(fair.Exempt(ctx), e.store, gauge, nil, r.Projection, r.Fingerprint); err != nil {
			return BudgetReport{}, false, err
		}
		if s.report == nil {
			return BudgetReport{}, false, nil // the report was about a deleted session with the same id
		}
	}
	used := r.Tokens + conv.Tokens() - min(last.raw, conv.Tokens())
	return reportOf(r.Budget, used, conv.Tokens(), nil), true, nil
}

// grown appends events to the session's conversation without reading the log. ok is false if the events do not follow
// the conversation, are of another incarnation, or are so many that memory must be reserved for them.
func (s *session) grown(gauge budget.Gauge, policy projection.Options, of eventlog.Incarnation, appended []eventlog.Event) (conv *reduce.Conversation, ok bool) {
	if policy.Name == projection.HarnessView || of != s.of || len(appended) == 0 {
		return nil, false
	}
	if conv, ok = s.convs.get(conversationKey(gauge, policy)); !ok || conv.Head() < appended[0].Seq-1 {
		return nil, false
	}
	appended = appended[min(int(conv.Head()+1-appended[0].Seq), len(appended)):]
	size := uint64(0)
	for i := range appended {
		if appended[i].Seq != conv.Head()+1+eventlog.Seq(i) {
			return nil, false
		}
		size += eventlog.Size(appended[i])
	}
	if conversationFactor*size >= leastWork {
		return nil, false
	}
	for i := range appended {
		conv.Append(appended[i])
	}
	return conv, !conv.Incomplete()
}

// BudgetReport says how much of the budget was used. Its tokens are those that the provider is expected to count: the
// gauge's count times Calibration.
type BudgetReport struct {
	Calibration float64
	State       budget.State
	Target      uint64
	Raw         uint64 // the whole log, unreduced
	Projected   uint64
	Tiers       map[budget.Tier]uint64
	Tokenizer   string
}
