package evaluate

import (
	"bytes"
	"cmp"
	"context"
	"strconv"
	"time"

	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/projection"
)

// Contender is a policy to compare on one session.
type Contender struct {
	// Reads says how the policy reads the log.
	Reads  projection.Options
	Policy Policy
	// Cause is reported for a prefix change if no reducer changed the message; empty is "log".
	Cause string
}

// Terms are the limits and prices by which prompts are measured.
type Terms struct {
	// Target is the size that prompts should not exceed, and Window the model's window, both in tokens.
	Target, Window uint64
	// Overhead is what is sent before every prompt, such as tool schemas, in tokens.
	Overhead uint64
	Prices   budget.Prices
	// CacheTTL is how long the provider keeps a prefix after a request that read or wrote it; 0 is without end. Calls
	// without a time in the transcript count as immediate.
	CacheTTL time.Duration
	// Done, if not nil, is called after each step with the number of events before the step.
	Done func(events int)
}

// Outcome is the result of one policy on one session.
type Outcome struct {
	Figures Figures
	Bill    Bill
	// Trail has one point for each step.
	Trail []Point
}

// Point is one prompt.
type Point struct {
	Time time.Time // of the newest event before it; zero if the transcript has none
	// Tokens is the size of the prompt, and Read how much of it came from the provider's cache.
	Tokens, Read uint64
	// Spent is the bill of all prompts so far.
	Spent float64
	// Changed says that the previous prompt is no prefix of this one; Cause says why.
	Changed bool
	Cause   string
	Refused bool
}

// Compare replays a session under several policies, step by step. The error is the context's.
func Compare(ctx context.Context, s *Session, gauge budget.Gauge, contenders []Contender, terms Terms) ([]Outcome, error) {
	type way struct {
		harness, scrub bool
	}
	logs := map[way]*Log{}
	runs := make([]contest, len(contenders))
	for i, c := range contenders {
		how := way{c.Reads.Name == projection.HarnessView, c.Reads.Scrub}
		if logs[how] == nil {
			logs[how] = NewLog(gauge, c.Reads)
		}
		runs[i] = contest{log: logs[how], policy: c.Policy, cause: cmp.Or(c.Cause, "log"), out: Outcome{Figures: NewFigures()}}
	}
	for _, st := range s.Steps {
		for _, l := range logs {
			if err := l.advance(ctx, s.Events, st.Before); err != nil {
				return nil, err
			}
		}
		// Prompts are often the same until the first of the policies drops something.
		sights := map[string]Sight{}
		var prompts [][]byte
		for i := range runs {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			p := runs[i].policy.Render(runs[i].log)
			p.Hash = strconv.Itoa(indexOf(prompts, p.JSON))
			prompts = append(prompts, p.JSON)
			runs[i].meter.Sights = sights
			runs[i].step(s, st, p, terms)
		}
		if terms.Done != nil {
			terms.Done(st.Before)
		}
	}
	out := make([]Outcome, len(runs))
	for i := range runs {
		out[i] = runs[i].out
	}
	return out, ctx.Err()
}

// indexOf returns the index of the first element equal to one, or len(all).
func indexOf(all [][]byte, one []byte) int {
	for i := range all {
		if bytes.Equal(all[i], one) {
			return i
		}
	}
	return len(all)
}

// contest is the state of one policy in the replay of a session.
type contest struct {
	log    *Log
	policy Policy
	cause  string
	meter  Meter
	biller biller
	out    Outcome
}

func (c *contest) step(s *Session, st Step, p Prompt, terms Terms) {
	at := Point{Time: s.Events[st.Before-1].Time, Refused: p.Refused != ""}
	if at.Refused {
		c.out.Figures.Refuse(st, p.Refused)
	} else {
		stable, changed := p.compare(c.biller.last)
		if changed {
			at.Changed, p.Cause = true, c.causeAt(p, stable)
			at.Cause = p.Cause
		}
		c.meter.Measure(&c.out.Figures, s, st, p, terms.Target)
		at.Tokens, at.Read = c.biller.pay(&c.out.Bill, p, stable, at.Time, terms)
	}
	at.Spent = c.out.Bill.Spent
	c.out.Trail = append(c.out.Trail, at)
}

// causeAt returns the cause of a change of message i.
func (c *contest) causeAt(p Prompt, i int) string {
	if i < len(p.Messages) && p.Messages[i].Cause != "" {
		return p.Messages[i].Cause
	}
	return c.cause
}
