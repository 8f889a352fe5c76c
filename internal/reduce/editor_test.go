package reduce_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/reduce/reducetest"
)

// conversation reads events in the notation of scripts.
func conversation(t *testing.T, notation string) (*record, *reduce.Conversation) {
	t.Helper()
	events, err := reducetest.ParseEvents(strings.TrimSpace(notation), 1)
	if err != nil {
		t.Fatal(err)
	}
	s := newSession()
	if err := s.append(events...); err != nil {
		t.Fatal(err)
	}
	return s.log, s.conv
}

const edited = `
	system: You are a coding agent.
	user: @20 a task | image x.png
	assistant: think of it | call c1 read {} | call c2 read {}
	tool: c1 @20 body
	assistant (pinned): think hard | call c3 read {}
	tool: c3 @20 body
	assistant: nothing but a text
	assistant: think of nothing but this
	user: @20 another task
	user: @20 the newest task
`

// Groups of the conversation above.
const (
	system = iota
	task
	read
	pinned
	text
	thought
	another
	newest
)

func TestEditorRefuses(t *testing.T) {
	log, conv := conversation(t, edited)
	full := reduce.NewView(gauge, conv.Groups())
	call := func(group, n int) *reduce.Call { return &full.Group(group).Calls[n] }
	long := strings.Repeat("longer than what it replaces ", 100)
	short := "[contextd: ctx:4.0]"
	stubbed := func(e *reduce.Editor) { e.Replace(read, call(read, 0), reduce.Stubbed, short, "test", "why") }
	leave := func(e *reduce.Editor) { e.Drop(read, "test", "why") }
	for name, c := range map[string]struct {
		before func(*reduce.Editor)
		verb   func(*reduce.Editor) bool
		want   bool
	}{
		"stub": {nil, func(e *reduce.Editor) bool {
			return e.Replace(read, call(read, 0), reduce.Stubbed, short, "test", "why")
		}, true},
		"stub pinned": {nil, func(e *reduce.Editor) bool {
			return e.Replace(pinned, call(pinned, 0), reduce.Stubbed, short, "test", "why")
		}, false},
		"stub interrupted": {nil, func(e *reduce.Editor) bool { return e.Replace(read, call(read, 1), reduce.Stubbed, "", "test", "why") }, false},
		"stub by more": {nil, func(e *reduce.Editor) bool {
			return e.Replace(read, call(read, 0), reduce.Stubbed, long, "test", "why")
		}, false},
		"stub by as much": {nil, func(e *reduce.Editor) bool {
			return e.Replace(read, call(read, 0), reduce.Stubbed, call(read, 0).Body, "test", "why")
		}, false},
		"stub a stub by more": {stubbed, func(e *reduce.Editor) bool {
			return e.Replace(read, call(read, 0), reduce.Stubbed, short+" and more", "test", "why")
		}, false},
		"stub a stub by less": {stubbed, func(e *reduce.Editor) bool {
			return e.Replace(read, call(read, 0), reduce.Stubbed, "gone", "test", "why")
		}, true},
		"redact": {nil, func(e *reduce.Editor) bool {
			return e.Replace(read, call(read, 0), reduce.Redacted, short, "test", "why")
		}, true},
		"redact pinned": {nil, func(e *reduce.Editor) bool {
			return e.Replace(pinned, call(pinned, 0), reduce.Redacted, short, "test", "why")
		}, false},
		"redact interrupted": {nil, func(e *reduce.Editor) bool { return e.Replace(read, call(read, 1), reduce.Redacted, "", "test", "why") }, false},
		"redact by more": {nil, func(e *reduce.Editor) bool {
			return e.Replace(read, call(read, 0), reduce.Redacted, long, "test", "why")
		}, false},
		"redact a stub by more": {stubbed, func(e *reduce.Editor) bool {
			return e.Replace(read, call(read, 0), reduce.Redacted, short+" and more", "test", "why")
		}, false},
		"redact a stub by less": {stubbed, func(e *reduce.Editor) bool {
			return e.Replace(read, call(read, 0), reduce.Redacted, "gone", "test", "why")
		}, true},
		"redact what left": {leave, func(e *reduce.Editor) bool {
			return e.Replace(read, call(read, 0), reduce.Redacted, "gone", "test", "why")
		}, false},
		"drop":                        {nil, func(e *reduce.Editor) bool { return e.Drop(read, "test", "why") }, true},
		"drop what failed":            {nil, func(e *reduce.Editor) bool { return e.PutDropped(read, full.PrepareDrop(read, "test", "why", true)) }, true},
		"drop a text":                 {nil, func(e *reduce.Editor) bool { return e.Drop(text, "test", "why") }, true},
		"drop a user's text":          {nil, func(e *reduce.Editor) bool { return e.Drop(another, "test", "why") }, true},
		"drop the newest user's text": {nil, func(e *reduce.Editor) bool { return e.Drop(newest, "test", "why") }, false},
		"clip the newest user's text": {nil, func(e *reduce.Editor) bool { return e.ClipText(newest, 0, 0, "", "test", "why") }, true},
		"collapse the newest user's":  {func(e *reduce.Editor) { e.Collapse(9, nil, short) }, func(e *reduce.Editor) bool { return e.Collapse(10, nil, short) }, false},
		"drop the system prompt":      {nil, func(e *reduce.Editor) bool { return e.Drop(system, "test", "why") }, false},
		"drop the anchor":             {nil, func(e *reduce.Editor) bool { return e.Drop(task, "test", "why") }, false},
		"drop pinned":                 {nil, func(e *reduce.Editor) bool { return e.Drop(pinned, "test", "why") }, false},
		"drop again":                  {leave, func(e *reduce.Editor) bool { return e.Drop(read, "test", "why") }, false},
		"drop for a longer reason":    {nil, func(e *reduce.Editor) bool { return e.Drop(read, "test", long) }, false},
		"drop what was stubbed":       {stubbed, func(e *reduce.Editor) bool { return e.Drop(read, "test", "why") }, true},
		"collapse what left":          {leave, func(e *reduce.Editor) bool { return e.Collapse(7, nil, short) }, true},
		"clip what left": {leave, func(e *reduce.Editor) bool {
			return e.Replace(read, call(read, 0), reduce.Clipped, "gone", "test", "why")
		}, false},
		"clip": {nil, func(e *reduce.Editor) bool {
			return e.Replace(read, call(read, 0), reduce.Clipped, short, "test", "why")
		}, true},
		"clip pinned": {nil, func(e *reduce.Editor) bool {
			return e.Replace(pinned, call(pinned, 0), reduce.Clipped, short, "test", "why")
		}, false},
		"clip interrupted": {nil, func(e *reduce.Editor) bool { return e.Replace(read, call(read, 1), reduce.Clipped, "", "test", "why") }, false},
		"clip by more": {nil, func(e *reduce.Editor) bool {
			return e.Replace(read, call(read, 0), reduce.Clipped, long, "test", "why")
		}, false},
		"clip a stub by more": {stubbed, func(e *reduce.Editor) bool {
			return e.Replace(read, call(read, 0), reduce.Clipped, short+" and more", "test", "why")
		}, false},
		"clip the anchor":               {nil, func(e *reduce.Editor) bool { return e.ClipAnchor(task, 0, 0, short, "test", "why") }, true},
		"clip the anchor by more":       {nil, func(e *reduce.Editor) bool { return e.ClipAnchor(task, 0, 0, long, "test", "why") }, false},
		"clip the anchor's image":       {nil, func(e *reduce.Editor) bool { return e.ClipAnchor(task, 0, 1, "", "test", "why") }, false},
		"clip the system prompt":        {nil, func(e *reduce.Editor) bool { return e.ClipAnchor(system, 0, 0, "", "test", "why") }, true},
		"clip another user message":     {nil, func(e *reduce.Editor) bool { return e.ClipAnchor(another, 0, 0, "", "test", "why") }, false},
		"clip the anchor as any text":   {nil, func(e *reduce.Editor) bool { return e.ClipText(task, 0, 0, "", "test", "why") }, false},
		"clip a user's text":            {nil, func(e *reduce.Editor) bool { return e.ClipText(another, 0, 0, "", "test", "why") }, true},
		"clip a pinned text":            {nil, func(e *reduce.Editor) bool { return e.ClipText(pinned, 0, 0, "", "test", "why") }, false},
		"omit thinking":                 {nil, func(e *reduce.Editor) bool { return e.OmitThinking(read, "test", "why") }, true},
		"omit pinned thinking":          {nil, func(e *reduce.Editor) bool { return e.OmitThinking(pinned, "test", "why") }, false},
		"omit thinking where is none":   {nil, func(e *reduce.Editor) bool { return e.OmitThinking(text, "test", "why") }, false},
		"omit it again":                 {func(e *reduce.Editor) { e.OmitThinking(read, "test", "why") }, func(e *reduce.Editor) bool { return e.OmitThinking(read, "test", "why") }, false},
		"omit all that there is":        {nil, func(e *reduce.Editor) bool { return e.OmitThinking(thought, "test", "why") }, false},
		"collapse":                      {nil, func(e *reduce.Editor) bool { return e.Collapse(7, nil, short) }, true},
		"collapse the anchor":           {nil, func(e *reduce.Editor) bool { return e.Collapse(2, nil, "") }, false},
		"collapse into more":            {nil, func(e *reduce.Editor) bool { return e.Collapse(7, nil, strings.Repeat(long, 10)) }, false},
		"collapse but for all":          {nil, func(e *reduce.Editor) bool { return e.Collapse(4, keeping(full, read), "") }, false},
		"collapse but for the first":    {nil, func(e *reduce.Editor) bool { return e.Collapse(7, keeping(full, read), "") }, true},
		"collapse and collapse further": {func(e *reduce.Editor) { e.Collapse(4, nil, short) }, func(e *reduce.Editor) bool { return e.Collapse(8, nil, short+short) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			e := full.Editor()
			if c.before != nil {
				c.before(e)
			}
			tokens, touched := e.Tokens(), e.Touched()
			before := reducetest.Bytes(e.View())
			if got := c.verb(e); got != c.want {
				t.Fatalf("%v, want %v", got, c.want)
			}
			after := e.View()
			if c.want && (e.Touched() == touched || e.Tokens() >= tokens) {
				t.Errorf("took effect on %d, from %d to %d tokens", e.Touched()-touched, tokens, e.Tokens())
			}
			if !c.want && (e.Touched() != touched || e.Tokens() != tokens || !slices.Equal(before, reducetest.Bytes(after))) {
				t.Errorf("refused, and changed something")
			}
			if e.Tokens() != after.Tokens() {
				t.Errorf("the editor says %d tokens, the view %d", e.Tokens(), after.Tokens())
			}
			checkCounts(t, after)
		})
	}
	if want := reduce.NewView(gauge, conv.Groups()); !sameView(full, want) {
		t.Error("an editor changed the view that it was made from")
	}
	checkView(t, log, conv, full)
}

// TestDrop: what is in the place of a dropped group names its calls, and says
// how they ended.
func TestDrop(t *testing.T) {
	_, conv := conversation(t, `
		user: Go.
		assistant: Both, please. | call c1 read {"path":"a.go"} | call c2 bash {"command":"make"} | call c3 bash {"command":"ls"}
		tool: c1 @20 body | c2! @20 body
		assistant: *20 nothing but words,
		assistant: Well.
	`)
	full := reduce.NewView(gauge, conv.Groups())
	for name, c := range map[string]struct {
		verb func(*reduce.Editor) bool
		at   int
		want reduce.Dropped
	}{
		"with calls": {func(e *reduce.Editor) bool { return e.Drop(1, "test", "so be it") }, 1, reduce.Dropped{
			Text:    "[contextd: 3 calls removed: so be it]\nread {\"path\":\"a.go\"} → ok ctx:3.0\nbash {\"command\":\"make\"} → error ctx:3.1\nbash {\"command\":\"ls\"} → interrupted\n",
			Reducer: "test", Reason: "so be it",
		}},
		"with failed calls": {func(e *reduce.Editor) bool { return e.PutDropped(1, full.PrepareDrop(1, "test", "so be it", true)) }, 1, reduce.Dropped{
			Text:    "[contextd: 3 calls removed: so be it]\nread {\"path\":\"a.go\"} → error ctx:3.0\nbash {\"command\":\"make\"} → error ctx:3.1\nbash {\"command\":\"ls\"} → error\n",
			Reducer: "test", Reason: "so be it",
		}},
		"without": {func(e *reduce.Editor) bool { return e.Drop(2, "test", "so be it") }, 2, reduce.Dropped{Reducer: "test", Reason: "so be it"}},
	} {
		e := full.Editor()
		if !c.verb(e) {
			t.Fatalf("%s: refused", name)
		}
		v := e.View()
		if got := v.Dropped(c.at); got == nil || got.Text != c.want.Text || got.Reducer != c.want.Reducer || got.Reason != c.want.Reason {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
		messages := full.Messages() - len(v.Group(c.at).Messages)
		if c.want.Text != "" {
			messages++
		}
		if v.Messages() != messages || v.Len() != full.Len() || len(v.Edits(c.at)) != 0 {
			t.Errorf("%s: %d messages in %d groups, want %d in %d", name, v.Messages(), v.Len(), messages, full.Len())
		}
		checkCounts(t, v)
	}
}

func keeping(v reduce.View, i int) map[*reduce.Group]bool {
	return map[*reduce.Group]bool{v.Group(i): true}
}

// checkCounts counts what is shown again.
func checkCounts(t fataler, v reduce.View) {
	var sum uint64
	for _, m := range reducetest.Show(v) {
		sum += m.Tokens(gauge)
	}
	for i := range v.Len() {
		sum -= v.GroupTokens(i)
	}
	if d, _ := v.Digest(); sum != d.Tokens {
		t.Fatalf("the groups leave %d tokens for a digest of %d", sum, d.Tokens)
	}
}

// TestEditor applies verbs at random: whatever they are, nothing is split, moved,
// grown or pinned and touched, and every count is right.
func TestEditor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newSession()
		var at time.Duration
		for range rapid.IntRange(1, 30).Draw(t, "events") {
			if err := s.append(genEvent(t, s.log.head, &at)); err != nil {
				t.Fatalf("%v", err)
			}
		}
		full := reduce.NewView(gauge, s.conv.Groups())
		e := full.Editor()
		for range rapid.IntRange(1, 20).Draw(t, "verbs") {
			tokens, touched := e.Tokens(), e.Touched()
			if ok := draw(t, e); ok != (e.Touched() > touched) || e.Touched() == touched && e.Tokens() != tokens {
				t.Fatalf("answered %v, touched %d, from %d to %d tokens", ok, e.Touched()-touched, tokens, e.Tokens())
			}
			v := e.View()
			checkCounts(t, v)
			checkView(t, s.log, s.conv, v)
			checkOrder(t, s.conv.Groups(), v)
		}
		if !sameView(full, reduce.NewView(gauge, s.conv.Groups())) {
			t.Fatalf("an editor changed the view that it was made from")
		}
	})
}

// draw applies one verb.
func draw(t *rapid.T, e *reduce.Editor) bool {
	v := e.View()
	if v.Len() == 0 {
		return false
	}
	i := rapid.IntRange(0, v.Len()-1).Draw(t, "group")
	g := v.Group(i)
	switch verb := rapid.IntRange(0, 5).Draw(t, "verb"); {
	case verb == 4:
		return e.Drop(i, "test", "why")
	case verb == 5 && len(g.Calls) > 0:
		call := &g.Calls[rapid.IntRange(0, len(g.Calls)-1).Draw(t, "call")]
		return e.Replace(i, call, reduce.Redacted, fmt.Sprintf("[contextd: %s]", reduce.Pointer(call.Seq, call.Block)), "test", "why")
	case verb == 0 && len(g.Calls) > 0:
		call := &g.Calls[rapid.IntRange(0, len(g.Calls)-1).Draw(t, "call")]
		text := fmt.Sprintf("%s [contextd: %s]", prose(400).Draw(t, "text"), reduce.Pointer(call.Seq, call.Block))
		if rapid.Bool().Draw(t, "clip") {
			return e.Replace(i, call, reduce.Clipped, text, "test", "why")
		}
		return e.Replace(i, call, reduce.Stubbed, text, "test", "why")
	case verb == 1 && g.Kind != reduce.KindTurn:
		m := rapid.IntRange(0, len(g.Messages)-1).Draw(t, "message")
		b := rapid.IntRange(0, len(g.Messages[m].Blocks)-1).Draw(t, "block")
		block := g.Messages[m].Blocks[b]
		return e.ClipAnchor(i, m, b, "[contextd: "+reduce.Pointer(block.Seq, block.Index)+"]", "test", "why")
	case verb == 2 && !g.Sealed:
		return e.OmitThinking(i, "test", "why")
	default:
		through := eventlog.Seq(rapid.Uint64Range(1, uint64(g.Last)).Draw(t, "through"))
		return e.Collapse(through, nil, prose(400).Draw(t, "digest"))
	}
}

// checkOrder checks that the view's groups are in the order of the log.
func checkOrder(t fataler, groups []*reduce.Group, v reduce.View) {
	at := 0
	for _, g := range v.Groups() {
		for at < len(groups) && groups[at] != g {
			at++
		}
		if at == len(groups) {
			t.Fatalf("the group at %d is out of order or not of the log", g.First)
		}
	}
}
