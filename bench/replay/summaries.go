package main

import (
	"context"
	"fmt"
	"text/tabwriter"

	"github.com/contextd/contextd/internal/assemble"
	"github.com/contextd/contextd/internal/evaluate"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/summarize"
	"github.com/contextd/contextd/internal/summarize/extractive"
)

// sentence is a fake model whose summary is one sentence without any names.
type sentence struct{}

func (sentence) Summarize(context.Context, summarize.Request) (summarize.Output, error) {
	return summarize.Output{Text: "The work went on as it was planned."}, nil
}

// summarizers are the rows of the table.
var summarizers = []struct {
	name string
	by   summarize.Backend
}{{"none", nil}, {"a sentence", sentence{}}, {"extractive", extractive.Backend{}}}

// summaries prints for each budget what summaries cost and how much they help, for no summary, the fake and
// the extractive summarizer. The digest omits what its summary already says, so with a better summary the
// rest of the digest is smaller.
func (r *report) summaries(windows []uint64) error {
	if err := r.measureEverything(); err != nil {
		return err
	}
	for _, tokens := range windows {
		b, err := resolve(tokens)
		if err != nil {
			return err
		}
		fmt.Fprintf(r.out, "## %d tokens (target %d)\n\n", tokens, b.Target)
		w := tabwriter.NewWriter(r.out, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprint(w, "summaries by\tcost · recall · evidence · edits\tdigest\tsummary\trest\t\n")
		for _, s := range summarizers {
			of, err := r.local(b, func() (evaluate.Policy, error) {
				p, err := underTest(assemble.Policy{Reduction: reduce.DefaultPolicy()}, b)
				if err != nil {
					return nil, err
				}
				return p.SummarizedBy(s.name, s.by), nil
			})
			if err != nil {
				return err
			}
			f := r.sum(of, "")
			n := uint64(max(f.Digests, 1))
			fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t\n", s.name, r.row("", of, "").short(), f.DigestTokens/n, f.SummaryTokens/n, (f.DigestTokens-f.SummaryTokens)/n)
		}
		if err := w.Flush(); err != nil {
			return err
		}
		fmt.Fprintln(r.out)
	}
	return nil
}
