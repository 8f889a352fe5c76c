package ledger_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/ledger"
)

func TestPlan(t *testing.T) {
	type call struct{ tool, arguments, body string }
	todo := func(statuses ...string) call {
		text := ""
		for i, s := range statuses {
			if i > 0 {
				text += ","
			}
			text += fmt.Sprintf(`{"content":"Step %d","status":%q,"activeForm":"Stepping"}`, i+1, s)
		}
		return call{"TodoWrite", `{"todos":[` + text + `]}`, "ok"}
	}
	for name, c := range map[string]struct {
		calls []call
		limit uint64
		want  string
	}{
		"none": {nil, 1000, ""},
		"the newest list": {
			[]call{todo("pending"), todo("completed", "in_progress", "pending")}, 1000,
			"1 of 3 steps done, ctx:2.0:\n- in progress: Step 2\n- open: Step 3\n- done: Step 1\n",
		},
		"what is open before what is done": {
			[]call{todo("completed", "completed", "pending")}, 60,
			"2 of 3 steps done, ctx:1.0:\n- open: Step 3\n- done: Step 2\n",
		},
		"no room": {[]call{todo("pending")}, 10, ""},
		"Codex": {
			[]call{{"update_plan", `{"explanation":"why","plan":[{"step":"Look\n\nEarlier","status":"completed"},{"step":"Mend","status":"in_progress"}]}`, "Plan updated"}}, 1000,
			"1 of 2 steps done, ctx:1.0:\n- in progress: Mend\n- done: Look Earlier\n",
		},
		"OpenHands": {
			[]call{{"task_tracker", `{"command":"plan","task_list":[{"id":"1","title":"Look","status":"todo","notes":""}]}`, ""}}, 1000,
			"0 of 1 steps done, ctx:1.0:\n- open: Look\n",
		},
		"one step at a time": {
			[]call{
				{"TaskCreate", `{"subject":"Look","description":"Look at it","activeForm":"Looking"}`, "Task #1 created successfully: Look"},
				{"TaskCreate", `{"subject":"Mend","description":"Mend it"}`, "Task #2 created successfully: Mend"},
				{"TaskUpdate", `{"taskId":"1","status":"completed"}`, "Updated task #1 status"},
				{"TaskUpdate", `{"taskId":"7","status":"completed"}`, "no such task"},
				{"TaskUpdate", `{"taskId":"2","subject":"Mend and test"}`, "Updated task #2 subject"},
			}, 1000,
			"1 of 2 steps done, ctx:5.0:\n- open: Mend and test\n- done: Look\n",
		},
		"no plans": {
			[]call{
				{"Task", `{"description":"Review it","prompt":"Go"}`, "done"}, {"write_todo", `{"todos":"x"}`, ""}, {"plan", `no JSON`, ""},
				{"list", `{"items":[{"content":"a","status":"b"}]}`, ""}, {"todo", `{"todos":[{"content":"a"}]}`, ""}, {"todo", `{"todos":[]}`, ""},
			}, 1000, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := ledger.NewPlan(budget.NewGauge(perBytes(1)))
			for i, call := range c.calls {
				p.Add(call.tool, call.arguments, call.body, fmt.Sprintf("ctx:%d.0", i+1))
			}
			if got := budget.Join(p.Write(c.limit)); got != c.want {
				t.Errorf("got\n%swant\n%s", got, c.want)
			}
		})
	}
}

// TestStepsCostAlike holds what a plan allocates for a call that adds or changes one step: about as much in a long plan
// as in a short one.
func TestStepsCostAlike(t *testing.T) {
	const few, times = 300, 8
	allocated := func(n int) uint64 {
		p := ledger.NewPlan(budget.NewGauge(perBytes(1)))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for i := range n {
			p.Add("TaskCreate", `{"subject":"Look"}`, fmt.Sprintf("Task #%d created", i), "ctx:1.0")
		}
		for i := range n {
			p.Add("TaskUpdate", fmt.Sprintf(`{"taskId":"%d","status":"completed"}`, i), "ok", "ctx:2.0")
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	if small, large := allocated(few), allocated(few*times); large > small*times*2 {
		t.Errorf("%d bytes a step of %d, and %d of %d", small/few, few, large/few/times, few*times)
	}
}
