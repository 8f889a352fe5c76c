package projection_test

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/projection"
	"github.com/contextd/contextd/internal/reduce"
)

// rule is an expression, and the same condition in Go.
type rule struct {
	source string
	says   func(g *reduce.Group, age uint32, index int) string
}

var rules = []rule{
	{`age < 3`, func(_ *reduce.Group, age uint32, _ int) string { return pick(age < 3, "keep", "drop") }},
	{`age > 2 || tools == []`, func(g *reduce.Group, age uint32, _ int) string {
		return pick(age > 2 || len(g.Calls) == 0, "keep", "drop")
	}},
	{`errors > 0 ? "keep" : age > 4 ? "drop" : "stub"`, func(g *reduce.Group, age uint32, _ int) string {
		return pick(countFailed(g) > 0, "keep", pick(age > 4, "drop", "stub"))
	}},
	{`"read" in tools ? "clip" : index > 5 ? "stub" : "keep"`, func(g *reduce.Group, _ uint32, index int) string {
		reads := false
		for i := range g.Calls {
			reads = reads || g.Calls[i].Name == "read"
		}
		return pick(reads, "clip", pick(index > 5, "stub", "keep"))
	}},
	{`age < 3 ? "stub" : "keep"`, func(_ *reduce.Group, age uint32, _ int) string { return pick(age < 3, "stub", "keep") }},
	{`age < 3 ? "clip" : "keep"`, func(_ *reduce.Group, age uint32, _ int) string { return pick(age < 3, "clip", "keep") }},
	{`roles == ["user"] && text_chars > 100 ? "drop" : "keep"`, func(g *reduce.Group, _ uint32, _ int) string {
		return pick(len(g.Messages) > 0 && g.Kind == reduce.KindUser && onlyUser(g) && g.Chars > 100, "drop", "keep")
	}},
	{`size(tools) / (results - 1) > 0 ? "drop" : "stub"`, func(g *reduce.Group, _ uint32, _ int) string {
		n := len(g.Calls)
		for i := range g.Calls {
			if g.Calls[i].Interrupted {
				n--
			}
		}
		if n == 1 {
			return "keep" // the expression fails
		}
		return pick(len(g.Calls)/(n-1) > 0, "drop", "stub")
	}},
}

func pick(yes bool, a, b string) string {
	if yes {
		return a
	}
	return b
}

func countFailed(g *reduce.Group) (n int) {
	for i := range g.Calls {
		if projection.Failed(&g.Calls[i]) {
			n++
		}
	}
	return n
}

func onlyUser(g *reduce.Group) bool {
	for _, m := range g.Messages {
		if m.Role != eventlog.RoleUser {
			return false
		}
	}
	return true
}

func TestCustom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := genCleaning(t, projection.CustomExpression)
		r := rapid.SampledFrom(rules).Draw(t, "rule")
		o.Expression = r.source
		grow(t, o, func(s *session, before *request, now request) {
			checkVerdicts(t, o, r, s.conv.Turns(), before, now)
			checkStaysHidden(t, before, now)
			checkStaysClipped(t, before, now)
		})
	})
}

// checkStaysClipped checks that what was clipped is shown no longer than it was.
func checkStaysClipped(t fataler, before *request, now request) {
	if before == nil {
		return
	}
	clipped := map[*reduce.Group][]reduce.Edit{}
	for i := range before.applied.View.Len() {
		clipped[before.applied.View.Group(i)] = before.applied.View.Edits(i)
	}
	v := now.applied.View
	for i := range v.Len() {
		for _, e := range clipped[v.Group(i)] {
			if e.Kind != reduce.Clipped || v.Dropped(i) != nil {
				continue
			}
			if edit, ok := v.Edit(i, e.Message, e.Block); !ok || edit.Tokens > e.Tokens {
				t.Fatalf("the group at %d was clipped to %d tokens and is no more", v.Group(i).First, e.Tokens)
			}
		}
	}
}

// checkVerdicts compares each group with the rule: it never shows more than the strictest verdict so far
// allows, and it shows more than the present verdict only if less would save nothing.
func checkVerdicts(t fataler, o projection.Options, r rule, turns uint32, before *request, now request) {
	touched := map[*reduce.Group]bool{}
	if before != nil {
		for i, v := 0, before.applied.View; i < v.Len(); i++ {
			touched[v.Group(i)] = v.Dropped(i) != nil || len(v.Edits(i)) > 0
		}
	}
	kept := 2
	if o.KeepLast > 0 {
		kept = int(o.KeepLast)
	}
	v := now.applied.View
	for i := range v.Len() {
		g := v.Group(i)
		verdict := r.says(g, turns-g.Turn, i)
		if v.Spared(i) || i >= v.Len()-kept {
			verdict = "keep"
		}
		leaves := mayLeave(o, v, i, len(g.Calls) > 0) && i != v.LastUser()
		if verdict == "drop" && !leaves && len(g.Calls) == 0 || !mayChange(v, i) && (verdict != "drop" || !leaves) {
			verdict = "keep"
		}
		same := v.Dropped(i) == nil && reflect.DeepEqual(v.Edits(i), now.view.Edits(i))
		switch {
		case verdict == "keep" && !same && !touched[g] && !regrown(before, g):
			t.Fatalf("the group at %d was to be kept by %s", g.First, r.source)
		case verdict == "keep" || v.Dropped(i) != nil:
		case verdict == "drop" && len(g.Calls) == 0:
			t.Fatalf("the group at %d was to leave by %s", g.First, r.source)
		case mayChange(v, i):
			checkResults(t, v, i, verdict)
		}
	}
}

// regrown reports whether a late event has changed the group since the request before.
func regrown(before *request, g *reduce.Group) bool {
	if before == nil {
		return false
	}
	for _, old := range before.applied.View.Groups() {
		if old.First == g.First && old != g {
			return true
		}
	}
	return false
}

// checkResults checks that no large body is shown in a group whose verdict removes bodies, or only its ends
// if the verdict clips.
func checkResults(t fataler, v reduce.View, i int, verdict string) {
	const small, ends = 60, 420 // tokens
	g := v.Group(i)
	for k := range g.Calls {
		c := &g.Calls[k]
		b := g.Messages[c.Result].Blocks[0]
		tokens := b.Tokens
		edit, edited := v.Edit(i, c.Result, 0)
		if edited {
			tokens = edit.Tokens
		}
		if c.Interrupted || c.Body == "" || edited && edit.Kind == reduce.Stubbed {
			continue
		}
		if most := map[string]uint64{"clip": ends, "stub": small, "drop": small}[verdict]; tokens > most {
			t.Fatalf("%d tokens of result %s at %d are shown, for %s", tokens, c.ID, g.First, verdict)
		}
	}
}
