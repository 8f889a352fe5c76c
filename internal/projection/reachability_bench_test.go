package projection_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/projection"
	"github.com/contextd/contextd/internal/reduce"
)

// module is a session of an agent that reads modules of about 3 KiB one after the
// other, and comes back to older ones.
func module(turn int) []eventlog.Event {
	file := turn
	if turn%8 == 0 {
		file = turn / 2
	}
	id, path := fmt.Sprintf("call_%d", turn), fmt.Sprintf("pkg/mod%d/handler.go", file)
	var body strings.Builder
	for i := range 80 {
		fmt.Fprintf(&body, "\tif err := handle%dStep%d(ctx); err != nil {\n", file, i)
	}
	return []eventlog.Event{
		{ID: fmt.Sprintf("a%d", turn), Body: &eventlog.Message{Role: eventlog.RoleAssistant, Blocks: []eventlog.Block{
			eventlog.Text{Text: "I look at " + path + " in /repo."},
			eventlog.ToolCall{CallID: id, Name: "read_file", Arguments: fmt.Sprintf(`{"path":%q,"cwd":"/repo"}`, path)},
		}}},
		{ID: fmt.Sprintf("t%d", turn), Body: &eventlog.Message{Role: eventlog.RoleTool, Blocks: []eventlog.Block{
			eventlog.ToolResult{CallID: id, Content: []eventlog.Block{eventlog.Text{Text: body.String()}}},
		}}},
	}
}

// BenchmarkReachability measures one more turn of a session of so many groups: with the name index cached
// (warm), without it (cold), and the reduction of the same session without the policy.
func BenchmarkReachability(b *testing.B) {
	const turns, steps = 2000, 200
	for _, target := range []uint64{0, 600_000} {
		name := "unreduced"
		if target > 0 {
			name = fmt.Sprintf("reduced to %dk", target/1000)
		}
		run := func(b *testing.B, apply, fresh bool) {
			var s *session
			var policy projection.Policy
			limit := budget.Budget{Target: target}
			ask := func() {
				view, err := viewOf(s, limit)
				if err != nil {
					b.Fatal(err)
				}
				if apply {
					if fresh {
						policy, _ = projection.New(projection.Options{Name: projection.ReachabilityGC})
					}
					s.shown = policy.Apply(view, s.conv.Turns(), s.shown).State
				}
			}
			turn := turns
			b.ReportAllocs()
			for b.Loop() {
				if turn == turns {
					b.StopTimer()
					s, turn = newSession(), 0
					policy, _ = projection.New(projection.Options{Name: projection.ReachabilityGC})
					for ; turn < turns-steps; turn++ {
						if err := s.append(module(turn)...); err != nil {
							b.Fatal(err)
						}
					}
					ask()
					b.StartTimer()
				}
				if err := s.append(module(turn)...); err != nil {
					b.Fatal(err)
				}
				turn++
				ask()
			}
		}
		b.Run(name+"/without", func(b *testing.B) { run(b, false, false) })
		b.Run(name+"/warm", func(b *testing.B) { run(b, true, false) })
		b.Run(name+"/cold", func(b *testing.B) { run(b, true, true) })
	}
}

func viewOf(s *session, limit budget.Budget) (reduce.View, error) {
	if limit.Target == 0 {
		return reduce.NewView(gauge, s.conv.Groups()), nil
	}
	r, err := reduce.NewPipeline(reduce.DefaultPolicy(), s.conv).Run(limit, s.reduced, reduce.Ask{})
	s.reduced = r.State
	return r.View, err
}
