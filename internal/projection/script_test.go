package projection_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/projection"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/reduce/reducetest"
)

// TestScripts runs the conversations in testdata, in a folder for each policy
// (-rewrite writes their output again). The commands:
//
//	append      events in the notation of reducetest.ParseEvents
//	work        from=N to=N: so many turns, each of which reads the file src/fN.go; each
//	            is reduced and shown
//	policy      a policy in the notation of parsePolicy
//	budget      target=N: reduce to so many tokens first, by the default policy
//	apply       the policy on the reduced view; prints what it shows and says.
//	            brief prints the latter alone
//	show        event=N, or digest: a message of the last view in full
//	new         start another session; policy and budget stay
//
// Every view is also held against the invariants by session.request.
func TestScripts(t *testing.T) {
	paths, err := filepath.Glob("testdata/*/*.txt")
	if err != nil || len(paths) < 10 {
		t.Fatalf("only %d scripts: %v", len(paths), err)
	}
	for _, path := range paths {
		name, _ := filepath.Rel("testdata", strings.TrimSuffix(path, ".txt"))
		t.Run(name, func(t *testing.T) {
			s := &script{session: newSession()}
			datadriven.RunTest(t, path, s.run)
		})
	}
}

type script struct {
	*session
	options projection.Options
	// policy stays in use over requests, as it does in a daemon.
	policy projection.Policy
	budget budget.Budget
}

func (s *script) run(t *testing.T, d *datadriven.TestData) string {
	var err error
	switch d.Cmd {
	case "append":
		return s.appendEvents(t, d)
	case "work":
		return s.work(t, d)
	case "policy":
		if s.options, err = parsePolicy(d.Input); err == nil {
			s.policy, err = projection.New(s.options)
		}
	case "budget":
		d.ScanArgs(t, "target", &s.budget.Target)
	case "apply":
		return s.apply(t, d)
	case "show":
		return s.show(t, d)
	case "new":
		s.session = newSession()
	default:
		d.Fatalf(t, "%q is no command", d.Cmd)
	}
	if err != nil {
		return fmt.Sprintf("refused: %v\n", err)
	}
	return ""
}

func (s *script) appendEvents(t *testing.T, d *datadriven.TestData) string {
	events, err := reducetest.ParseEvents(d.Input, len(s.events)+1)
	if err == nil {
		err = s.append(events...)
	}
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	return fmt.Sprintf("head %d, turn %d, %d groups, %dt\n", s.conv.Head(), s.conv.Turns(), len(s.conv.Groups()), s.conv.Tokens())
}

func (s *script) work(t *testing.T, d *datadriven.TestData) string {
	var from, to int
	d.ScanArgs(t, "from", &from)
	d.ScanArgs(t, "to", &to)
	for n := from; n <= to; n++ {
		d.Input = fmt.Sprintf("assistant: call w%[1]d read {\"path\":\"src/f%[1]d.go\"}\ntool: w%[1]d @80 f%[1]dWord", n)
		s.appendEvents(t, d)
		if _, err := s.request(t, s.options, s.policy, s.budget); err != nil {
			d.Fatalf(t, "%v", err)
		}
	}
	return fmt.Sprintf("%d events\n", s.conv.Head())
}

func (s *script) apply(t *testing.T, d *datadriven.TestData) string {
	r, err := s.request(t, s.options, s.policy, s.budget)
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	var out strings.Builder
	if !d.HasArg("brief") {
		out.WriteString(linesOf(r.applied.View))
	}
	fmt.Fprintf(&out, "= %dt of %dt", r.applied.View.Tokens(), r.view.Tokens())
	if r.applied.Step != nil {
		fmt.Fprintf(&out, "; touched %d: %s", r.applied.Step.Touched, r.applied.Step.Note)
	}
	out.WriteByte('\n')
	if len(r.applied.RootsConsulted) > 0 {
		fmt.Fprintf(&out, "roots: %s\n", strings.Join(r.applied.RootsConsulted, ", "))
	}
	if r.applied.Reason != "" {
		fmt.Fprintf(&out, "reason: %s\n", r.applied.Reason)
	}
	return out.String()
}

func (s *script) show(t *testing.T, d *datadriven.TestData) string {
	var seq uint64
	d.MaybeScanArgs(t, "event", &seq)
	return reducetest.InFull(s.last.applied.View, eventlog.Seq(seq), d.HasArg("digest"), reduce.Redacted)
}
