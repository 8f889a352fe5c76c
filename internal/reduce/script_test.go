package reduce_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/reduce/reducetest"
)

// TestScripts runs the conversations in testdata (-rewrite writes their output
// again). The commands:
//
//	append      events in the notation of reducetest.ParseEvents
//	policy      a policy in the notation of parsePolicy
//	budget      target=N and caps of tiers, in tokens
//	reduce      an assembly from the state so far; prints the view.
//	            reserved=N is next to it; steps prints what those reducers say
//	            that touched something; brief prints the totals alone
//	show        event=N, or digest: a message of the last view in full
//	roots       words that protect the results which hold one
//	state       the state after the last assembly
//	forget      start from the state of a session that was never reduced
//	new         start another session; policy and budget stay
//
// Every assembly is also held against the invariants by session.reduce.
func TestScripts(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(paths) < 10 {
		t.Fatalf("only %d scripts: %v", len(paths), err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			s := &script{session: newSession()}
			datadriven.RunTest(t, path, s.run)
		})
	}
}

type script struct {
	*session
	policy reduce.Policy
	budget budget.Budget
}

func (s *script) run(t *testing.T, d *datadriven.TestData) string {
	var err error
	switch d.Cmd {
	case "append":
		return s.appendEvents(t, d)
	case "policy":
		s.policy, err = parsePolicy(d.Input)
	case "budget":
		s.budget, err = parseBudget(argsOf(d))
	case "reduce":
		return s.reduceOnce(t, d)
	case "propose":
		return s.propose()
	case "summary":
		return s.summary(t, d)
	case "show":
		return s.show(t, d)
	case "state":
		return stateText(s.state)
	case "roots":
		s.roots = strings.Fields(d.Input)
	case "forget":
		s.state, s.last = reduce.State{}, nil
	case "new":
		s.session = newSession()
	default:
		d.Fatalf(t, "%q is no command", d.Cmd)
	}
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	return ""
}

func argsOf(d *datadriven.TestData) string {
	all := make([]string, len(d.CmdArgs))
	for i, a := range d.CmdArgs {
		all[i] = a.Key + "=" + strings.Join(a.Vals, "")
	}
	return strings.Join(all, " ")
}

func (s *script) appendEvents(t *testing.T, d *datadriven.TestData) string {
	events, err := reducetest.ParseEvents(d.Input, len(s.log.events)+1)
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	if err := s.append(events...); err != nil {
		d.Fatalf(t, "%v", err)
	}
	return fmt.Sprintf("head %d, turn %d, %d groups, %dt\n", s.conv.Head(), s.conv.Turns(), len(s.conv.Groups()), s.conv.Tokens())
}

func (s *script) reduceOnce(t *testing.T, d *datadriven.TestData) string {
	var ask reduce.Ask
	d.MaybeScanArgs(t, "reserved", &ask.Reserved)
	r, err := s.reduce(t, s.policy, s.budget, ask)
	var over *reduce.OverBudgetError
	if errors.As(err, &over) {
		return fmt.Sprintf("refused: %v\n", over)
	}
	var out strings.Builder
	if !d.HasArg("brief") {
		for _, m := range reducetest.Show(r.View) {
			fmt.Fprintln(&out, strings.TrimRight(m.Line(gauge), " "))
		}
	}
	digest, _ := r.View.Digest()
	fmt.Fprintf(&out, "= %dt of %d; %d groups, %d left\n", r.View.Tokens()+ask.Reserved, s.budget.Target, r.View.Len(), digest.Groups)
	if d.HasArg("steps") {
		for i, st := range r.Steps {
			if i > 0 && st.Touched == 0 {
				continue // the first one says why the whole was done
			}
			fmt.Fprintf(&out, "%s: %d to %dt, touched %d: %s\n", st.Reducer, st.TokensBefore, st.TokensAfter, st.Touched, st.Note)
		}
	}
	return out.String()
}

func (s *script) propose() string {
	pipeline := reduce.NewPipeline(s.policy, s.conv, s.summaries...)
	now, err := pipeline.Current(s.budget, s.state, reduce.Ask{})
	if err != nil {
		return err.Error() + "\n"
	}
	span, ok := pipeline.Propose(s.budget, now, reduce.Ask{})
	if !ok {
		return "nothing\n"
	}
	return fmt.Sprintf("events %d to %d, extends %q\n", span.From, span.To, span.Extends)
}

// summary adds a summary with the input as its text.
func (s *script) summary(t *testing.T, d *datadriven.TestData) string {
	summary := reduce.Summary{By: "a model", Text: reducetest.ParseText(d.Input)}
	var through uint64
	d.ScanArgs(t, "id", &summary.ID)
	d.ScanArgs(t, "through", &through)
	summary.Through = eventlog.Seq(through)
	s.summaries = append(s.summaries, summary)
	return ""
}

func (s *script) show(t *testing.T, d *datadriven.TestData) string {
	var seq uint64
	d.MaybeScanArgs(t, "event", &seq)
	return reducetest.InFull(s.last.result.View, eventlog.Seq(seq), d.HasArg("digest"))
}

func stateText(s reduce.State) string {
	out := fmt.Sprintf("evicted as of event %d (turn %d), stubbed through %d, collapsed through %d for %d\nresults over %dt are clipped, further clips %v, anchor %dt\n",
		s.EvictedAsOf, s.EvictedTurn, s.Through("tool_results"), s.CollapsedThrough, s.CollapsedFor, s.ClipTokens, s.Clips, s.AnchorTokens)
	if s.Summary != "" {
		out += fmt.Sprintf("quotes summary %s\n", s.Summary)
	}
	if s.SystemTextTokens > 0 {
		out += fmt.Sprintf("system texts %dt\n", s.SystemTextTokens)
	}
	return out
}
