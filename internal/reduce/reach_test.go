package reduce

import (
	"fmt"
	"testing"

	eventlog "github.com/contextd/contextd/internal/log"
)

// TestReach reads a file, then other files of so many tokens, and then names the first one in a call. Who named it
// last, and how far back, decides whether the call reaches back.
func TestReach(t *testing.T) {
	said := func(text string) []Message {
		return []Message{{Role: eventlog.RoleUser, Blocks: []Block{{Block: eventlog.Text{Text: text}}}}}
	}
	call := func(arguments, body string) *Group {
		return &Group{Kind: KindTurn, Tokens: 10, Calls: []Call{{Arguments: arguments, Body: body}}}
	}
	names := call(`{"path":"pkg/first.go"}`, "")
	for name, c := range map[string]struct {
		groups []*Group
		far    int
	}{
		"nobody":                     {[]*Group{names}, 0},
		"a call, just now":           {[]*Group{names, names}, 0},
		"a call, long ago":           {[]*Group{names, call("", ""), call("", ""), names}, 1},
		"a result, long ago":         {[]*Group{call("", "pkg/first.go"), call("", ""), call("", ""), names}, 1},
		"a user, long ago":           {[]*Group{{Kind: KindUser, Tokens: 10, Messages: said("pkg/first.go")}, call("", ""), call("", ""), names}, 1},
		"a user, long ago and since": {[]*Group{names, call("", ""), call("", ""), {Kind: KindUser, Tokens: 10, Messages: said("pkg/first.go")}, names}, 0},
		"the anchor, which stays":    {[]*Group{{Kind: KindUser, Anchor: true, Tokens: 10, Messages: said("pkg/first.go")}, call("", ""), call("", ""), names}, 0},
	} {
		r := &reach{tokens: 20, at: map[string]uint64{}}
		turns := 0
		for _, g := range c.groups {
			r.read(g)
			if g.Kind == KindTurn {
				turns++
			}
		}
		if got, want := fmt.Sprint(r.far, r.turns), fmt.Sprint(c.far, turns); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
