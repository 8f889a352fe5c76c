package assemble

import (
	"context"

	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/projection"
	"github.com/contextd/contextd/internal/render"
)

func report(p projected, b budget.Budget) BudgetReport {
	tiers := p.result.View.TierTokens()
	for _, r := range p.reminders {
		tiers[budget.TierDialogue] += r.Tokens
	}
	for tier, tokens := range tiers {
		tiers[tier] = b.Real(tokens)
	}
	return reportOf(b, p.tokens(), p.conv.Tokens(), tiers)
}

// reportOf returns the provider's tokens, as far as they are known.
func reportOf(b budget.Budget, used, raw uint64, tiers map[budget.Tier]uint64) BudgetReport {
	return BudgetReport{
		State: b.StateOf(used), Target: b.Real(b.Target), Raw: b.Real(raw), Projected: b.Real(used),
		Tiers: tiers, Tokenizer: b.Tokenizer, Calibration: b.Factor(),
	}
}

// Estimate says how the budget of the last assembly would be used with the
// events appended since, none of them reduced. It waits for nothing: it answers false
// while somebody else uses the session, and where more than the newest events would have
// to be read, as before the first assembly since the daemon started.
func (e *Engine) Estimate(ctx context.Context, sessionID string) (BudgetReport, bool, error) {
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
	if ready, err := s.atHand(ctx, e.store, gauge, r.Projection); err != nil || !ready {
		return BudgetReport{}, false, err
	}
	conv, err := s.shown(ctx, e.store, gauge, nil, r.Projection)
	if err != nil {
		return BudgetReport{}, false, err
	}
	if s.report == nil {
		return BudgetReport{}, false, nil // it was of another session that had the id
	}
	used := r.Tokens + conv.Tokens() - min(last.raw, conv.Tokens())
	return reportOf(r.Budget, used, conv.Tokens(), nil), true, nil
}

// Forget drops what is held of a session in memory; call it when the session was
// deleted.
func (e *Engine) Forget(sessionID string) { e.sessions.forget(sessionID) }

// compare says how much of the projection recorded before is unchanged. Where that is not
// the one in memory it is computed again from its record.
func (e *Engine) compare(ctx context.Context, s *session, messages []Message, record projection.Record) (CacheReport, error) {
	if record.Previous == "" {
		return CacheReport{}, nil
	}
	last, ok := s.last.get(record.Stream())
	if !ok || last.record.ID != record.Previous {
		r, err := e.record(ctx, s.id, record.Previous)
		if err != nil {
			return CacheReport{}, err
		}
		if last, err = e.encodeAgain(ctx, s, r); err != nil {
			return CacheReport{}, err
		}
	}
	return compareMessages(last.messages, messages), nil
}

// encodeAgain computes the messages of a recorded projection.
func (e *Engine) encodeAgain(ctx context.Context, s *session, r projection.Record) (lastProjection, error) {
	f, err := format(r)
	if err != nil {
		return lastProjection{}, err
	}
	p, err := e.again(ctx, s, r)
	if err != nil {
		return lastProjection{}, err
	}
	scratch := &session{id: s.id}
	scratch.reset()
	return lastProjection{r, scratch.encode(p, f).messages}, ctx.Err()
}

func compareMessages(old, now []Message) CacheReport {
	c := CacheReport{StableMessages: common(old, now)}
	for i := range c.StableMessages {
		c.StableTokens += now[i].Tokens
	}
	// Reminders are expected to give way to what was said since.
	end := len(old)
	for end > 0 && old[end-1].Passing {
		end--
	}
	if c.StableMessages < end {
		c.BrokenBy = breaker(now, c.StableMessages)
	}
	return c
}

// breaker is what rewrote the message at a place: a reducer, a policy or "log".
func breaker(now []Message, at int) string {
	if at < len(now) && now[at].Cause != "" {
		return now[at].Cause
	}
	return causeLog
}

// The causes of a break that no reducer and no policy made: an event, or reminders that
// come after the newest message.
const (
	causeLog       = "log"
	causeReminders = "reminders"
)

// injections checks what the runtime adds against the reserves and lays it out.
func injections(gauge budget.Accountant, b budget.Budget, all []render.Injection) ([]render.Message, error) {
	var out []render.Message
	var sum uint64
	for _, in := range all {
		tokens := uint64(budget.MessageOverhead)
		for _, block := range in.Blocks {
			tokens += gauge.Block(block)
		}
		if in.ReserveTokens > 0 && tokens > in.ReserveTokens {
			return nil, &InjectionError{in.Name, tokens, in.ReserveTokens}
		}
		if sum += tokens; sum > b.InjectionReserve {
			return nil, &InjectionError{in.Name, tokens, b.InjectionReserve - min(sum-tokens, b.InjectionReserve)}
		}
		out = append(out, render.InjectionMessage(in, tokens))
	}
	return out, nil
}
