package projection

import (
	"fmt"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/projection/expression"
	"github.com/contextd/contextd/internal/reduce"
)

const (
	// customKeepLast is how many of the newest groups custom leaves alone by default.
	customKeepLast = 2
	// customClipTokens is what stays of a result that an expression clips.
	customClipTokens = 400
)

// custom goes by an expression over each group. What it did to a group stays done: it
// is recorded in the state, and a later verdict can only do more.
type custom struct {
	program          *expression.Program
	keepLast         int
	ignoreSignatures bool
	known            *customFacts
}

func newCustom(o Options) (Policy, error) {
	program, err := expression.Compiled(o.Expression)
	if err != nil {
		return nil, &OptionsError{"expression", err.Error()}
	}
	c := custom{program: program, keepLast: customKeepLast, ignoreSignatures: o.IgnoreSignatures, known: newCustomFacts()}
	if o.KeepLast > 0 {
		c.keepLast = int(o.KeepLast)
	}
	return c, nil
}

func (c custom) Apply(v reduce.View, turns uint32, before State) Applied {
	run := customRun{
		custom: c, view: v, turns: turns, editor: v.Editor(),
		dropped: set(before.Dropped), redacted: set(before.Redacted), clipped: set(before.Clipped),
	}
	for i := range v.Len() {
		run.visit(i)
	}
	c.known.prune(v)
	out := Applied{View: run.editor.View(), State: run.after}
	out.Step = &reduce.Step{
		Reducer: CustomExpression, TokensBefore: v.Tokens(), TokensAfter: out.View.Tokens(),
		Touched: run.editor.Touched(), Note: run.note(),
	}
	if run.sealed > 0 {
		out.SafetyBlocked = true
		out.Reason = fmt.Sprintf("provider_safety_blocked: %d groups with sealed reasoning stay as they are", run.sealed)
	}
	return out
}

func set[T comparable](all []T) map[T]bool {
	in := make(map[T]bool, len(all))
	for _, x := range all {
		in[x] = true
	}
	return in
}

// customRun is one application.
type customRun struct {
	custom
	view   reduce.View
	turns  uint32
	editor *reduce.Editor
	// dropped, redacted and clipped are what was done before, after what is done now.
	// What left the view with a run is forgotten: it does not come back.
	dropped           map[eventlog.Seq]bool
	redacted, clipped map[Place]bool
	after             State
	// trial tells what would be done to groups that are left alone.
	trial *reduce.Editor

	groups, results, clips, sealed, failed int
	firstFailed                            eventlog.Seq
}

func (r *customRun) visit(i int) {
	g := r.view.Group(i)
	if g.Anchor || g.Pinned {
		return
	}
	if r.dropped[g.First] {
		r.drop(r.editor, i)
		r.after.Dropped = append(r.after.Dropped, g.First)
		return
	}
	verdict := expression.Keep
	if r.view.Dropped(i) == nil && r.view.Len()-i > r.keepLast {
		verdict = r.verdict(i)
	}
	if g.Sealed {
		r.visitSealed(i, verdict)
		return
	}
	if verdict == expression.Drop && r.drop(r.editor, i) {
		r.after.Dropped = append(r.after.Dropped, g.First)
		return
	}
	for k := range g.Calls {
		r.visitResult(i, &g.Calls[k], verdict)
	}
}

// visitSealed lets a group with sealed reasoning leave whole where that is allowed, and
// otherwise counts it if anything would have been done to it.
func (r *customRun) visitSealed(i int, verdict expression.Verdict) {
	if verdict == expression.Keep {
		return
	}
	g := r.view.Group(i)
	if verdict == expression.Drop && r.ignoreSignatures {
		if r.drop(r.editor, i) {
			r.after.Dropped = append(r.after.Dropped, g.First)
		}
		return
	}
	if r.trial == nil {
		r.trial = r.view.Editor()
	}
	would := verdict == expression.Drop && r.trial.Drop(i, CustomExpression, dropReason)
	for k := range g.Calls {
		switch verdict {
		case expression.Stub:
			would = r.redact(r.trial, i, &g.Calls[k]) || would
		case expression.Clip:
			would = r.clip(r.trial, i, &g.Calls[k]) || would
		}
	}
	if would {
		r.sealed++
	}
}

// visitResult does to a result what was done before, or what the verdict on its group
// adds to that.
func (r *customRun) visitResult(i int, call *reduce.Call, verdict expression.Verdict) {
	at := Place{call.Seq, call.Block}
	switch before := r.redacted[at]; {
	case before || verdict == expression.Stub:
		done := r.redact(r.editor, i, call)
		if done {
			r.results++
		}
		if done || before {
			r.after.Redacted = append(r.after.Redacted, at)
			return
		}
	}
	switch before := r.clipped[at]; {
	case before || verdict == expression.Clip:
		done := r.clip(r.editor, i, call)
		if done {
			r.clips++
		}
		if done || before {
			r.after.Clipped = append(r.after.Clipped, at)
		}
	}
}

// verdict is the expression's, or Keep where it fails.
func (r *customRun) verdict(i int) expression.Verdict {
	g := r.view.Group(i)
	now := expression.Standing{Tokens: r.view.GroupTokens(i), Index: i, FromEnd: r.view.Len() - 1 - i}
	if r.turns > g.Turn {
		now.Age = r.turns - g.Turn
	}
	verdict, err := r.program.Evaluate(r.known.of(g), now)
	if err != nil {
		if r.failed++; r.failed == 1 {
			r.firstFailed = g.First
		}
		return expression.Keep
	}
	return verdict
}

const (
	dropReason = "the policy's expression drops it"
	stubReason = "the policy's expression stubs its results"
	clipReason = "the policy's expression clips its results"
)

func (r *customRun) drop(e *reduce.Editor, i int) bool {
	done := e.Drop(i, CustomExpression, dropReason)
	if done {
		r.groups++
	}
	return done
}

func (r *customRun) redact(e *reduce.Editor, i int, call *reduce.Call) bool {
	return !call.Interrupted && e.Redact(i, call, r.known.pointer(call), CustomExpression, stubReason)
}

// clip leaves alone what is reduced to a pointer already: head and tail would show
// more.
func (r *customRun) clip(e *reduce.Editor, i int, call *reduce.Call) bool {
	if edit, ok := r.view.Edit(i, call.Result, 0); call.Interrupted || ok && edit.Kind != reduce.Clipped {
		return false
	}
	text, ok := r.known.excerpt(r.view, i, call)
	return ok && e.Clip(i, call, text, CustomExpression, clipReason)
}

func (r *customRun) note() string {
	note := fmt.Sprintf("dropped %d groups, stubbed %d results and clipped %d to %d tokens", r.groups, r.results, r.clips, customClipTokens)
	if r.sealed > 0 {
		note += fmt.Sprintf("; left %d with sealed reasoning", r.sealed)
	}
	if r.failed > 0 {
		note += fmt.Sprintf("; kept %d for which the expression failed, first that of event %d", r.failed, r.firstFailed)
	}
	return note
}
