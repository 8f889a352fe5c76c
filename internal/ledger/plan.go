package ledger

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/quote"
)

// Plan collects the agent's own plan from calls of planning tools: both those that give the whole list each
// time, and those that add or change one step.
type Plan struct {
	gauge   budget.Gauge
	steps   []planStep
	at      map[string]int // the index of the first step of each id; nil until needed
	pointer string         // of the newest call that changed it
}

type planStep struct{ id, text, status string }

// NewPlan returns a plan without steps.
func NewPlan(gauge budget.Gauge) *Plan { return &Plan{gauge: gauge} }

// Add records a call that did not fail.
func (p *Plan) Add(tool, arguments, body, pointer string) {
	name := strings.ToLower(tool)
	if !strings.Contains(name, "plan") && !strings.Contains(name, "todo") && !strings.Contains(name, "task") {
		return
	}
	var members map[string]json.RawMessage
	if json.Unmarshal([]byte(arguments), &members) != nil {
		return
	}
	if steps := wholePlan(members); steps != nil {
		p.steps, p.at, p.pointer = steps, nil, pointer
	} else if p.change(members, body) {
		p.pointer = pointer
	}
}

// wholePlan returns the list of steps in the arguments: the first list of objects that all have a text and a
// status.
func wholePlan(members map[string]json.RawMessage) []planStep {
	for _, name := range sortedNames(members) {
		var items []map[string]any
		if json.Unmarshal(members[name], &items) != nil || len(items) == 0 {
			continue
		}
		steps := make([]planStep, len(items))
		for i, item := range items {
			steps[i] = planStep{textIn(item, "id"), stepText(item), textIn(item, "status")}
		}
		if !slices.ContainsFunc(steps, func(s planStep) bool { return s.text == "" || s.status == "" }) {
			return steps
		}
	}
	return nil
}

// stepText returns the text of a step.
func stepText(item map[string]any) string {
	return textIn(item, "content", "step", "title", "subject", "task", "text", "description")
}

// textIn returns the first of these members that is a text.
func textIn(item map[string]any, names ...string) string {
	for _, name := range names {
		if text, ok := item[name].(string); ok && text != "" {
			return text
		}
	}
	return ""
}

// taskNumber matches the number that a tool's result gives to the step that it added.
var taskNumber = regexp.MustCompile(`^\W*[Tt]ask #?(\w+)`)

// change adds a step or changes one, and reports whether it did.
func (p *Plan) change(members map[string]json.RawMessage, body string) bool {
	item := make(map[string]any, len(members))
	for name, raw := range members {
		var text string
		if json.Unmarshal(raw, &text) == nil {
			item[name] = text
		}
	}
	id := textIn(item, "taskId", "task_id")
	if id == "" {
		found := taskNumber.FindStringSubmatch(body)
		if found == nil || textIn(item, "subject", "title") == "" {
			return false
		}
		p.add(planStep{found[1], stepText(item), "pending"})
		return true
	}
	at, ok := p.find(id)
	if !ok {
		return false
	}
	if text := textIn(item, "subject", "title"); text != "" {
		p.steps[at].text = text
	}
	if status := textIn(item, "status"); status != "" {
		p.steps[at].status = status
	}
	return true
}

func (p *Plan) add(step planStep) {
	if _, ok := p.find(step.id); !ok {
		p.at[step.id] = len(p.steps)
	}
	p.steps = append(p.steps, step)
}

// find returns the index of the first step of an id.
func (p *Plan) find(id string) (at int, ok bool) {
	if p.at == nil {
		p.at = make(map[string]int, len(p.steps))
		for i := range slices.Backward(p.steps) {
			p.at[p.steps[i].id] = i
		}
	}
	at, ok = p.at[id]
	return at, ok
}

// shown returns the status as written: "done" (also for cancelled steps), "open", or the tool's own word.
func (s planStep) shown() string {
	switch status := strings.ToLower(s.status); status {
	case "completed", "complete", "done", "cancelled", "canceled", "deleted":
		return "done"
	case "pending", "todo", "open", "not_started", "not-started":
		return "open"
	default:
		return strings.ReplaceAll(Cut(quote.Line(status), 20), "_", " ")
	}
}

// Write lists the open steps of the plan and, if there is room, the finished ones, in at most limit tokens; nothing
// if there is no plan.
func (p *Plan) Write(limit uint64) []budget.Piece {
	const stepBytes = 160
	var open, done []string
	for _, s := range p.steps {
		text := Cut(quote.Line(s.text), stepBytes)
		if status := s.shown(); status == "done" {
			done = append(done, "- done: "+text+"\n")
		} else {
			open = append(open, "- "+status+": "+text+"\n")
		}
	}
	if len(p.steps) == 0 {
		return nil
	}
	title := fmt.Sprintf("%d of %d steps done, %s:\n", len(done), len(p.steps), p.pointer)
	if p.pointer == "" {
		title = fmt.Sprintf("%d of %d steps done:\n", len(done), len(p.steps))
	}
	slices.Reverse(done) // the newest first
	lines := []budget.Piece{p.gauge.Piece(title)}
	sum := p.gauge.Sum(lines...)
	for _, line := range append(open, done...) {
		piece := p.gauge.Piece(line)
		next := *sum
		if next.Add(piece); next.Tokens() > limit {
			break
		}
		*sum = next
		lines = append(lines, piece)
	}
	if sum.Tokens() > limit {
		return nil
	}
	return lines
}
