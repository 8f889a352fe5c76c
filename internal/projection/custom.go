package projection

import (
	"fmt"
	"strings"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/projection/expression"
	"github.com/contextd/contextd/internal/reduce"
)

// customClipTokens is the size to which an expression clips a result.
const customClipTokens = 400

// custom applies an expression to each group. What it does to a group is recorded in the state and never undone;
// later verdicts can only do more.
type custom struct {
	options  Options
	keepLast int
	known    *customFacts
}

func (c custom) Apply(v reduce.View, turns uint32, before State) Applied {
	c.known.mu.Lock()
	defer c.known.mu.Unlock()
	run := customRun{
		custom: c, view: v, turns: turns, editor: v.Editor(), smallest: v.Editor(),
		dropped: set(before.Dropped), redacted: set(before.Redacted), clipped: set(before.Clipped),
		safety: newSafety(v, c.options),
	}
	for i := range v.Len() {
		if v.Ended() != nil {
			return Applied{View: v, State: before}
		}
		run.visit(i)
	}
	c.known.Prune(v.Groups())
	out := Applied{
		View: run.editor.View(), State: run.after,
		SafetyBlocked: run.safety.blocked > 0, Reason: run.safety.reason(),
	}
	out.Step = &reduce.Step{
		Reducer: CustomExpression, TokensBefore: v.Tokens(), TokensAfter: out.View.Tokens(),
		Touched: run.editor.Touched(), Note: run.note(),
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

// customRun is one application of the policy.
type customRun struct {
	custom
	view   reduce.View
	turns  uint32
	editor *reduce.Editor
	// dropped, redacted and clipped are the decisions before, and after those that hold now. Decisions on
	// groups that a collapse dropped are forgotten: these groups do not come back.
	dropped           map[eventlog.Seq]bool
	redacted, clipped map[eventlog.Place]bool
	after             State
	// smallest is an editor of the view with the groups to drop as small as any reduction can make them. If it frees
	// tokens to drop such a group now, it always does, so the group stays dropped.
	smallest *reduce.Editor

	groups, results, clips, failed int
	firstFailed                    eventlog.Seq
	failure                        error
	safety                         *safety
	// succeeded maps a tool to the newest group in which a call of it succeeded; nil until needed.
	succeeded map[string]eventlog.Seq
}

func (r *customRun) visit(i int) {
	if !mayTouch(r.view, i) {
		return
	}
	g := r.view.Group(i)
	verdict := expression.Keep
	switch {
	case r.dropped[g.First]:
		verdict = expression.Drop
	case r.view.Len()-i > r.keepLast:
		verdict = r.verdict(i)
	}
	allowed := r.safety.of(i)
	if verdict == expression.Drop && i != r.safety.loop {
		switch {
		case allowed.Whole && (r.dropped[g.First] || r.drops(i)):
			r.drop(i)
			return
		case !allowed.Whole && r.drops(i):
			r.safety.block(i) // the group was dropped before, and a late part sealed it since
		}
	}
	if verdict == expression.Drop {
		verdict = expression.Stub // the lines for its calls would be as large as the group
	}
	for k := range g.Calls {
		r.visitResult(i, &g.Calls[k], verdict, allowed.Results)
	}
}

// drops reports whether dropping the group frees tokens even when it is at its smallest: without its
// reasoning, and with pointers in place of its results.
func (r *customRun) drops(i int) bool {
	g := r.view.Group(i)
	r.smallest.OmitThinking(i, CustomExpression, "")
	for k := range g.Calls {
		r.redact(r.smallest, i, &g.Calls[k])
	}
	return r.smallest.PutDropped(i, r.known.dropped(r.view, i))
}

func (r *customRun) drop(i int) {
	if r.editor.PutDropped(i, r.known.dropped(r.view, i)) {
		r.groups++
	}
	r.after.Dropped = append(r.after.Dropped, r.view.Group(i).First)
}

// visitResult edits a result as before, or further if the verdict on its group asks for it. If results must
// stay (not allowed), it only finds out whether it would, to report that.
func (r *customRun) visitResult(i int, call *reduce.Call, verdict expression.Verdict, allowed bool) {
	at := call.Place()
	editor := r.editor
	if !allowed {
		editor = r.smallest
	}
	if verdict == expression.Stub || r.redacted[at] {
		done := r.redact(editor, i, call)
		switch {
		case !allowed && done:
			r.safety.block(i)
		case done:
			r.results++
		}
		if done && allowed || r.redacted[at] {
			r.after.Redacted = append(r.after.Redacted, at)
			return
		}
	}
	if verdict == expression.Clip || r.clipped[at] {
		done := r.clip(editor, i, call)
		switch {
		case !allowed && done:
			r.safety.block(i)
		case done:
			r.clips++
		}
		if done && allowed || r.clipped[at] {
			r.after.Clipped = append(r.after.Clipped, at)
		}
	}
}

// verdict returns the expression's verdict on group i; Keep if the expression fails.
func (r *customRun) verdict(i int) expression.Verdict {
	g := r.view.Group(i)
	now := expression.Position{Tokens: r.view.GroupTokens(i), ModelCalls: r.turns, Index: i, FromEnd: r.view.Len() - 1 - i}
	if r.options.program.ReadsContent() {
		now.Content = groupContent{r, g}
	}
	if r.turns > g.Turn {
		now.Age = r.turns - g.Turn
	}
	verdict, err := r.options.program.Evaluate(r.known.of(g), now)
	if err != nil {
		if r.failed++; r.failed == 1 {
			r.firstFailed, r.failure = g.First, err
		}
		return expression.Keep
	}
	return verdict
}

// groupContent gives an expression access to a group's content.
type groupContent struct {
	run   *customRun
	group *reduce.Group
}

// Text implements expression.Content.
func (c groupContent) Text() string {
	var all []string
	for m := range c.group.Messages {
		for _, b := range c.group.Messages[m].Blocks {
			if t, ok := b.Block.(eventlog.Text); ok {
				all = append(all, t.Text)
			}
		}
	}
	return strings.Join(all, "\n")
}

// Calls implements expression.Content.
func (c groupContent) Calls() []expression.Call {
	out := make([]expression.Call, len(c.group.Calls))
	for k := range c.group.Calls {
		call := &c.group.Calls[k]
		out[k] = expression.Call{
			Name: call.Name, Arguments: call.Arguments, Answered: !call.Interrupted,
			Failed:         func() bool { return Failed(call) },
			SucceededLater: func() bool { return c.run.newestSuccess(call.Name) > max(call.Seq, c.group.First) },
		}
		if !call.Interrupted {
			out[k].Result = call.Body
		}
	}
	return out
}

// newestSuccess returns the first event of the newest group in which a call of the tool
// succeeded; 0 if none did.
func (r *customRun) newestSuccess(tool string) eventlog.Seq {
	if r.succeeded == nil {
		r.succeeded = map[string]eventlog.Seq{}
		for _, g := range r.view.Groups() {
			for _, tool := range r.known.succeededIn(g) {
				r.succeeded[tool] = max(r.succeeded[tool], g.First)
			}
		}
	}
	return r.succeeded[tool]
}

const (
	dropReason = "dropped by policy"
	stubReason = "stubbed by policy"
	clipReason = "clipped by policy"
)

func (r *customRun) redact(e *reduce.Editor, i int, call *reduce.Call) bool {
	return !call.Interrupted && e.Put(i, r.known.pointer(r.view, i, call))
}

// clip clips a result. It does nothing if a pointer already replaces the result, because head and tail would show
// more.
func (r *customRun) clip(e *reduce.Editor, i int, call *reduce.Call) bool {
	if edit, ok := r.view.Edit(i, call.Result, 0); call.Interrupted || ok && edit.Kind != reduce.Clipped {
		return false
	}
	excerpt := r.known.excerpt(r.view, i, call)
	return excerpt != nil && e.Put(i, excerpt)
}

func (r *customRun) note() string {
	note := fmt.Sprintf("%d groups dropped, %d results redacted, %d clipped to %d tokens", r.groups, r.results, r.clips, customClipTokens)
	if r.failed > 0 {
		note += fmt.Sprintf("; kept %d groups for which the expression failed, the first at event %d: %v", r.failed, r.firstFailed, r.failure)
	}
	if r.safety.blocked > 0 {
		note += "; " + r.safety.reason()
	}
	return note
}
