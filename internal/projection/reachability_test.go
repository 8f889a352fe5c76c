package projection_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/projection"
	"github.com/contextd/contextd/internal/projection/reference"
	"github.com/contextd/contextd/internal/reduce"
)

var genNames = rapid.SampledFrom([]string{
	"src/a.go", "src/b.go", "src/a.gold", "parseTree", "pkg::run", "issue 2", "issue 12", "#2", "max_tokens", "9fceb02d0a", "`the build took rather long today`",
})

// genWork draws the next messages of an agent that reads and writes files whose names
// come up again.
func genWork(t *rapid.T, n int) []eventlog.Event {
	say := func(role eventlog.Role, blocks ...eventlog.Block) eventlog.Event {
		return eventlog.Event{ID: fmt.Sprintf("e%d-%v", n, role), Body: &eventlog.Message{
			Role: role, Model: rapid.SampledFrom([]string{"claude-x", "gemini-x", "gpt-x", ""}).Draw(t, "model"), Blocks: blocks, Pinned: rapid.IntRange(0, 20).Draw(t, "pinned") == 0,
		}}
	}
	words := func(label string) string {
		return "so " + strings.Join(rapid.SliceOfN(genNames, 0, 2).Draw(t, label), ", ") + " it is"
	}
	if n == 0 || rapid.IntRange(0, 5).Draw(t, "user") == 0 {
		return []eventlog.Event{say(eventlog.RoleUser, eventlog.Text{Text: words("asks")})}
	}
	blocks := []eventlog.Block{eventlog.Thinking{Text: words("thinks"), Signature: rapid.SampledFrom([]string{"", "s"}).Draw(t, "signed")}}
	if rapid.Bool().Draw(t, "speaks") {
		blocks = append(blocks, eventlog.Text{Text: words("says")})
	}
	var answers []eventlog.Block
	for i := range rapid.IntRange(0, 2).Draw(t, "calls") {
		id := fmt.Sprintf("c%d.%d", n, i)
		tool := rapid.SampledFrom([]string{"read", "read", "write_file", "max_tokens"}).Draw(t, "tool")
		blocks = append(blocks, eventlog.ToolCall{CallID: id, Name: tool, Arguments: fmt.Sprintf(`{"path":%q}`, genNames.Draw(t, "path"))})
		body := words("body") + strings.Repeat("\nand plain words", rapid.SampledFrom([]int{0, 40}).Draw(t, "lines"))
		if rapid.IntRange(0, 4).Draw(t, "quotable") == 0 {
			body = "the build took rather long today\n" + body
		}
		content := []eventlog.Block{eventlog.Text{Text: body}}
		switch rapid.IntRange(0, 12).Draw(t, "beside") {
		case 0:
			content = append(content, eventlog.Media{MIMEType: "image/png", URI: "a.png", Tokens: 9})
		case 1:
			content = append(content, eventlog.ProviderBlock{Provider: "anthropic", JSON: `{"type":"web"}`})
		}
		if rapid.IntRange(0, 9).Draw(t, "interrupted") > 0 {
			answers = append(answers, eventlog.ToolResult{CallID: id, Content: content, IsError: rapid.IntRange(0, 5).Draw(t, "failed") == 0})
		}
	}
	all := []eventlog.Event{say(eventlog.RoleAssistant, blocks...)}
	if len(answers) > 0 {
		all = append(all, say(eventlog.RoleTool, answers...))
	}
	return all
}

func genReachability(t *rapid.T) projection.Options {
	number := func(label string, of ...uint32) *uint32 {
		n := rapid.SampledFrom(of).Draw(t, label)
		return &n
	}
	o := projection.Options{
		Name: projection.ReachabilityGC, RootWindow: number("window", 0, 1, 3), MinChars: number("chars", 0, 100, 500),
		ClearAtLeastTokens: number("batch", 0, 0, 300, 100_000),
		KeepLast:           rapid.Uint32Range(0, 2).Draw(t, "keep"), IgnoreSignatures: rapid.Bool().Draw(t, "ignores"),
		RequireWriteBarrier: rapid.IntRange(0, 3).Draw(t, "barrier") == 0,
	}
	if rapid.IntRange(0, 3).Draw(t, "rooted") == 0 {
		o.Roots = []string{genNames.Draw(t, "root")}
		o.ActivePlan, o.Scratchpad = genNames.Draw(t, "plan"), genNames.Draw(t, "note")
	}
	return o
}

// TestReachability grows conversations and compares each answer with one that compares every root with
// every result.
func TestReachability(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := genReachability(t)
		policy, err := projection.New(o)
		if err != nil {
			t.Fatalf("%v", err)
		}
		s, b := newSession(), genTarget().Draw(t, "budget")
		for n := range rapid.IntRange(1, 25).Draw(t, "steps") {
			if err := s.append(genWork(t, n)...); err != nil {
				t.Fatalf("%v", err)
			}
			state := s.shown
			now, err := s.request(t, o, policy, b)
			if err != nil {
				continue
			}
			want := naiveReachability(o, now.view, s.conv.Turns(), state)
			got := map[eventlog.Place]bool{}
			v := now.applied.View
			for i := range v.Len() {
				for _, e := range v.Edits(i) {
					m := v.Group(i).Messages[e.Message]
					if e.Kind == reduce.Redacted && m.Role != eventlog.RoleTool {
						t.Fatalf("a message of the %v was redacted", m.Role)
					}
					if e.Kind == reduce.Redacted {
						got[eventlog.Place{Seq: m.Blocks[e.Block].Seq, Block: m.Blocks[e.Block].Index}] = true
					}
				}
				if d := v.Dropped(i); d != nil && d.Reducer == projection.ReachabilityGC {
					for _, c := range v.Group(i).Calls {
						got[c.Place()] = true
					}
				}
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("redacted %v; should be %v\n%s", got, want, linesOf(v))
			}
			if len(now.applied.State.Redacted) < len(got) {
				t.Fatalf("%d are redacted, %d remembered", len(got), len(now.applied.State.Redacted))
			}
		}
	})
}

// naiveReachability says which results are to be redacted.
func naiveReachability(o projection.Options, v reduce.View, turns uint32, before projection.State) map[eventlog.Place]bool {
	window := max(0, v.Len()-int(*o.RootWindow))
	keep := max(int(*o.RootWindow), int(o.KeepLast))
	if o.KeepLast == 0 {
		keep = max(int(*o.RootWindow), 2)
	}
	tools := map[string]bool{}
	var all, may []*held
	var lastWrite eventlog.Place
	for i := range v.Len() {
		g := v.Group(i)
		for c := range g.Calls {
			call := &g.Calls[c]
			tools[call.Name] = true
			if call.Interrupted {
				continue
			}
			if call.Name == "write_file" && !projection.Failed(call) {
				if place := (call.Place()); after(place, lastWrite) {
					lastWrite = place
				}
			}
			h := newHeld(v, i, call)
			all = append(all, h)
			known := slices.Contains(before.Redacted, h.place)
			edit, _ := v.Edit(i, call.Result, 0)
			if (i < v.Len()-keep || known) && !v.Spared(i) && !projection.Failed(call) && !h.media &&
				g.Messages[call.Result].Chars >= int(*o.MinChars) && edit.Kind != reduce.Stubbed {
				may = append(may, h)
			}
		}
	}
	name := func(name string, every, brings bool) {
		if tools[name] {
			return
		}
		holders, visible := 0, 0
		var newest *held
		for _, h := range all {
			if h.names[name] {
				visible++
			}
		}
		for _, h := range may {
			if h.names[name] {
				holders++
				newest = h // in the order of the calls
				if every || strings.Contains(name, " ") {
					h.reached, h.back = true, h.back || brings
				}
			}
		}
		if holders > 0 {
			newest.reached, newest.back = true, newest.back || brings && (every || visible == 1 || strings.Contains(name, " "))
		}
	}
	for _, text := range append([]string{o.ActivePlan, o.Scratchpad}, o.Roots...) {
		for _, n := range yielded(reference.EachReference, text) {
			name(n, true, true)
		}
	}
	for _, root := range o.Roots {
		for _, h := range may {
			if reference.HoldsPhrase(h.body, root) && !tools[root] {
				h.reached, h.back = true, true
			}
		}
	}
	for i := range v.Len() {
		g := v.Group(i)
		for _, m := range g.Messages {
			for _, b := range m.Blocks {
				var text string
				switch b := b.Block.(type) {
				case eventlog.Text:
					text = b.Text
				case eventlog.Thinking:
					text = b.Text
				case eventlog.ToolCall:
					text = b.Arguments
				}
				if i >= window || v.Spared(i) {
					for _, n := range yielded(reference.EachReference, text) {
						name(n, false, true)
					}
				}
			}
		}
	}
	for i := window; i < v.Len(); i++ {
		for c := range v.Group(i).Calls {
			if body := v.Group(i).Calls[c].Body; !v.Group(i).Calls[c].Interrupted {
				for _, n := range slices.Concat(yielded(reference.EachName, body), yielded(reference.EachField, body)) {
					if n != v.Group(i).Calls[c].Name {
						name(n, false, false)
					}
				}
			}
		}
	}
	return decideNaively(o, v, turns, before, may, lastWrite)
}

// held is a result and what it holds.
type held struct {
	place         eventlog.Place
	group         int
	call          *reduce.Call
	body          string
	names         map[string]bool
	media, sealed bool
	reached, back bool
}

func newHeld(v reduce.View, i int, call *reduce.Call) *held {
	h := &held{place: call.Place(), group: i, call: call, body: call.Body, names: map[string]bool{}}
	for _, list := range [][]string{
		yielded(reference.EachName, call.Body), yielded(reference.EachField, call.Body), yielded(reference.EachLine, call.Body),
		yielded(reference.EachName, call.Arguments), yielded(reference.EachField, call.Arguments),
	} {
		for _, n := range list {
			h.names[n] = n != call.Name || h.names[n]
		}
	}
	for _, b := range v.Group(i).Messages[call.Result].Blocks[0].Block.(eventlog.ToolResult).Content {
		switch b.(type) {
		case eventlog.Media:
			h.media = true
		case eventlog.ProviderBlock:
			h.sealed = true
		}
	}
	return h
}

func decideNaively(o projection.Options, v reduce.View, turns uint32, before projection.State, may []*held, lastWrite eventlog.Place) map[eventlog.Place]bool {
	leave := map[int][]*held{}
	var fresh []*held
	frees := uint64(0)
	for _, h := range may {
		known := slices.Contains(before.Redacted, h.place)
		switch {
		case slices.Contains(before.Restored, h.place), known && h.back, !known && h.reached:
		case !known && o.RequireWriteBarrier && !after(lastWrite, h.place):
		case known:
			leave[h.group] = append(leave[h.group], h)
		default:
			fresh = append(fresh, h)
			if e := v.Editor(); !h.sealed && mayChange(v, h.group) && e.Replace(h.group, h.call, reduce.Redacted, strings.Repeat("x", len(pointerLike(h))), "", "") {
				frees += v.Tokens() - e.Tokens()
			}
		}
	}
	if frees >= uint64(*o.ClearAtLeastTokens) || turns-before.BatchTurn >= projection.ClearEvery {
		for _, h := range fresh {
			leave[h.group] = append(leave[h.group], h)
		}
	}
	out := map[eventlog.Place]bool{}
	for i, all := range leave {
		e := v.Editor()
		g := v.Group(i)
		speaks := slices.ContainsFunc(g.Messages, func(m reduce.Message) bool {
			return m.Role == eventlog.RoleAssistant && slices.ContainsFunc(m.Blocks, isText)
		})
		sealed := slices.ContainsFunc(all, func(h *held) bool { return h.sealed })
		whole := sealed && o.IgnoreSignatures && !speaks && len(all) == len(g.Calls)
		left := whole && e.Drop(i, "", "nothing recent refers to it")
		for _, h := range all {
			// The verb refuses what a pointer would not shorten.
			if left || !whole && !h.sealed && mayChange(v, i) && e.Replace(i, h.call, reduce.Redacted, strings.Repeat("x", len(pointerLike(h))), "", "") {
				out[h.place] = true
			}
		}
	}
	return out
}

func isText(b reduce.Block) bool {
	_, ok := b.Block.(eventlog.Text)
	return ok
}

func after(a, b eventlog.Place) bool {
	return a.Seq > b.Seq || a.Seq == b.Seq && a.Block > b.Block
}

func pointerLike(h *held) string {
	return fmt.Sprintf("[contextd: %s result redacted, nothing recent refers to it: %d chars, sha256 0123456789ab; read again if needed: %s]",
		h.call.Name, len(h.body), reduce.Pointer(h.place.Seq, h.place.Block))
}

// yielded is what a scanner yields of a text.
func yielded(each func(string, func(string)), text string) []string {
	var all []string
	each(text, func(name string) { all = append(all, name) })
	return all
}
