package summarize

import (
	"bytes"
	"context"
	"strings"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/summarize/prompt"
)

// attempt asks a backend for the text of one span, chunk by chunk. Each text extends the one before.
type attempt struct {
	scheduler  *Scheduler
	summarizer *named
	proposal   Proposal
	task       task
	material   Material
	// chain is the log's chain at the end of the span, read before the material.
	chain []byte
	// ctx ends with the scheduler or the session.
	ctx context.Context
}

// write returns the summary, which is durable.
func (a attempt) write() (Summary, error) {
	request := Request{
		TaskID: a.proposal.requestID(), SessionID: a.proposal.SessionID, From: a.proposal.From, To: a.proposal.To,
		Older: a.material.Older, Reminders: a.material.Reminders, MaxOutputTokens: a.proposal.MaxOutputTokens, Count: a.material.Count,
	}
	summary := Summary{
		ID: a.proposal.SummaryID(), From: a.proposal.From, To: a.proposal.To, Ledger: a.material.Ledger, Index: a.material.Index,
		Summarizer: a.proposal.Summarizer, Instructions: a.proposal.Instructions.Fingerprint(), Extends: a.proposal.Extends, Version: Version,
	}
	if rules, ok := a.summarizer.Backend.(Rules); ok {
		request.Groups = a.material.Groups
		return a.ask(rules, request, summary, nil, true)
	}
	request.System = a.summarizer.Scrub.Text(a.proposal.Instructions.System(a.proposal.MaxOutputTokens))
	limit := a.proposal.MaxInputTokens
	if limit == 0 {
		limit = a.summarizer.MaxInputTokens
	}
	parts, err := cut(a.material, request.System, prompt.Writer{Scrub: a.summarizer.Scrub}, limit)
	if err != nil {
		return Summary{}, a.summarizer.backendError(err)
	}
	for {
		k, err := parts.next(request.Older)
		if err != nil {
			return Summary{}, a.summarizer.backendError(err)
		}
		request.Prompt, request.Groups = k.prompt, k.groups
		summary, err = a.ask(a.summarizer.Backend, request, summary, k.span, !parts.more())
		if err != nil || !parts.more() {
			return summary, err
		}
		request.Chunk++
		request.Older = summary.Text
	}
}

// ask makes one request, adds its output to the summary, and stores the summary after the last request. span is the
// request's text from the log, to find echoes; nil for Rules.
func (a attempt) ask(b Backend, r Request, summary Summary, span []string, last bool) (Summary, error) {
	answered := false
	out, err := a.summarizer.breaker.execute(func() (Output, error) {
		ctx, cancel := context.WithTimeout(a.ctx, a.summarizer.Timeout)
		defer cancel()
		out, err := b.Summarize(ctx, r)
		if a.ctx.Err() != nil && err != nil {
			return Output{}, &endedError{context.Cause(a.ctx)}
		}
		if err != nil {
			return Output{}, err
		}
		answered = true
		out.Text = strings.TrimSpace(out.Text)
		err = checkText(out.Text, r.MaxOutputTokens, r.Count)
		if err == nil && span != nil {
			err = checkEcho(out.Text, r.System, span)
		}
		return out, err
	})
	a.summarizer.breaker.report(a.scheduler.o.Observer.BreakerChanged)
	failed := err != nil && !isEnded(err)
	if err == nil {
		summary = a.add(summary, r, out)
		if last {
			summary.Time = a.scheduler.o.Now().UTC().Round(0)
			if err = a.stillThere(); err == nil {
				err = a.scheduler.ready(a.proposal, a.task, summary)
			}
		}
	}
	if settler, ok := b.(Settler); ok && answered {
		settled := Summary{}
		if last && err == nil {
			settled = summary
		}
		settler.Settled(r, settled, err)
	}
	if failed {
		err = a.summarizer.backendError(err)
	}
	return summary, err
}

// stillThere returns an error if the span has other events now, because the database was set back.
func (a attempt) stillThere() error {
	chain, err := a.scheduler.chainAt(context.WithoutCancel(a.ctx), a.proposal)
	if err == nil && !bytes.Equal(chain, a.chain) {
		err = &eventlog.ConflictError{Session: a.proposal.SessionID, What: "its summary, and changed what that is of"}
	}
	return err
}

// add adds the tokens of a request to the summary. If the backend gave no count, the gauge counts.
func (a attempt) add(summary Summary, r Request, out Output) Summary {
	summary.Text, summary.Model = out.Text, out.Model
	if out.InputTokens == 0 {
		out.InputTokens = r.inputTokens()
	}
	if out.OutputTokens == 0 {
		out.OutputTokens = r.Count(out.Text)
	}
	summary.InputTokens += out.InputTokens
	summary.OutputTokens += out.OutputTokens
	return summary
}

func (r Request) inputTokens() uint64 {
	if r.Prompt != "" {
		return r.Count(r.System) + r.Count(r.Prompt)
	}
	return r.Count(r.Older) + tokensOf(r.Groups)
}

func tokensOf(groups []*reduce.Group) uint64 {
	var n uint64
	for _, g := range groups {
		n += g.Tokens
	}
	return n
}
