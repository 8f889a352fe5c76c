package lifecycle_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/contextd/contextd/internal/lifecycle"
)

// runtime is a scripted subscriber.
type runtime struct {
	// does is allow, block, modify, silent (takes the call and says nothing), deaf
	// (does not take calls), leaves (when called) or hangs up (without taking calls,
	// so long after the beginning).
	does     string
	hangsUp  time.Duration
	reply    lifecycle.Reply
	deadline time.Duration
	// thinks is how long it takes to answer.
	thinks time.Duration

	saw []lifecycle.Call
}

// serve runs until the subscriber is closed.
func (r *runtime) serve(t rapid.TB, s *lifecycle.Subscriber) {
	switch r.does {
	case "deaf":
		return
	case "hangs up":
		time.AfterFunc(r.hangsUp, s.Close)
		return
	}
	for c := range s.Calls(context.Background()) {
		r.saw = append(r.saw, c)
		if c.Hook == lifecycle.PostCompact {
			continue
		}
		switch r.does {
		case "leaves":
			s.Close()
		case "silent":
		default:
			<-time.After(r.thinks)
			reply := r.reply
			reply.CallID = c.ID
			if err := s.Reply(reply); err != nil {
				t.Errorf("%s: %v", r.does, err)
			}
		}
	}
}

func drawRuntime(t *rapid.T, i int) *runtime {
	r := &runtime{
		does:     rapid.SampledFrom([]string{"allow", "block", "modify", "modify", "silent", "deaf", "leaves", "hangs up"}).Draw(t, "does"),
		deadline: time.Duration(rapid.IntRange(2, 60).Draw(t, "deadline")) * time.Second,
	}
	// Sometimes later than the deadline; never at the same moment.
	r.thinks = time.Duration(rapid.IntRange(0, 70).Draw(t, "thinks"))*time.Second + time.Millisecond
	r.hangsUp = time.Duration(rapid.IntRange(0, 200).Draw(t, "hangs up"))*time.Second + time.Microsecond
	if rapid.Bool().Draw(t, "reason") {
		r.reply.Reason = fmt.Sprintf("reason %d", i)
	}
	r.reply.Decision = lifecycle.Decision(r.does)
	if r.does == "allow" && rapid.Bool().Draw(t, "implicitly") {
		r.reply.Decision = ""
	}
	if r.does == "modify" {
		if rapid.Bool().Draw(t, "keep") {
			r.reply.KeepLastTurns = new(rapid.Uint32Range(0, 9).Draw(t, "keep_last_turns"))
		}
		if rapid.Bool().Draw(t, "target") {
			r.reply.TargetTokens = new(rapid.Uint64Range(1, 9000).Draw(t, "target_tokens"))
		}
		if rapid.Bool().Draw(t, "strategic") {
			r.reply.Strategy = rapid.SampledFrom([]string{"mask", "window", "summarize"}).Draw(t, "strategy")
		}
	}
	return r
}

// expectation is what the rules say of a list of runtimes.
type expectation struct {
	verdict lifecycle.Verdict
	took    time.Duration
	// asked are the terms that each of them was to see; nil if it was not called.
	asked []*lifecycle.Terms
}

// expect folds over the runtimes in their order, without any concurrency.
func expect(c lifecycle.Call, runtimes []*runtime, onTimeout lifecycle.Decision) expectation {
	e := expectation{asked: make([]*lifecycle.Terms, len(runtimes))}
	e.verdict = lifecycle.Verdict{Decision: lifecycle.Allow, Terms: c.Terms}
	var reasons []string
	for i, r := range runtimes {
		terms := e.verdict.Terms
		if r.does == "hangs up" && r.hangsUp < e.took+r.deadline {
			e.took = max(e.took, r.hangsUp)
			continue
		}
		switch r.does {
		case "leaves":
			e.asked[i] = &terms
			continue
		case "deaf", "hangs up":
		default:
			e.asked[i] = &terms
		}
		if r.does == "deaf" || r.does == "hangs up" || r.does == "silent" || r.thinks > r.deadline {
			e.took += r.deadline
			if onTimeout == lifecycle.Block {
				e.verdict.Decision = lifecycle.Block
				e.verdict.Reason = fmt.Sprintf("a hook did not answer within %s", r.deadline)
				return e
			}
			continue
		}
		e.took += r.thinks
		switch r.does {
		case "block":
			e.verdict.Decision, e.verdict.Reason = lifecycle.Block, r.reply.Reason
			return e
		case "modify":
			e.verdict.Decision = lifecycle.Modify
			if r.reply.KeepLastTurns != nil {
				e.verdict.Terms.KeepLastTurns = *r.reply.KeepLastTurns
			}
			if r.reply.TargetTokens != nil {
				e.verdict.Terms.TargetTokens = *r.reply.TargetTokens
			}
			if r.reply.Strategy != "" {
				e.verdict.Terms.Strategy = r.reply.Strategy
			}
			if r.reply.Reason != "" {
				reasons = append(reasons, r.reply.Reason)
			}
		}
	}
	e.verdict.Reason = strings.Join(reasons, "; ")
	return e
}

func drawCall(t *rapid.T) lifecycle.Call {
	return lifecycle.Call{
		SessionID: "s",
		Mode:      rapid.SampledFrom([]string{lifecycle.ModeManual, lifecycle.ModeHost, lifecycle.ModeAuto}).Draw(t, "mode"),
		Terms:     lifecycle.Terms{Strategy: "summarize", KeepLastTurns: 3, TargetTokens: 8000},
	}
}
