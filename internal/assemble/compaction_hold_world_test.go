package assemble_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"github.com/contextd/contextd/internal/assemble"
	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/disklog"
	"github.com/contextd/contextd/internal/log/memlog"
	"github.com/contextd/contextd/internal/projection"
	"github.com/contextd/contextd/internal/records"
)

// history is sessions that begin as one, on a store in memory and one on the disk.
type history struct {
	*rapid.T
	disk     *vfs.MemFS
	worlds   []*world
	branches []*branch
	seen     map[string]int
	drawn    int
}

// branch is a session, or a fork of one, as its callers know it.
type branch struct {
	id      string
	said    []saying
	pending []int // those of said that are calls without results
	marks   []decided
	answers []answer
	humans  []eventlog.Seq
}

// saying is a message of a session; zero for an event that no model reads.
type saying struct {
	first  eventlog.Seq // of its group
	word   string       // is nowhere else
	stays  bool         // whatever is decided
	result bool
}

// decided is a compaction or an undo.
type decided struct {
	seq, undoes eventlog.Seq
	gone        map[eventlog.Seq]bool
	kept        []eventlog.Seq // may be quoted instead, where they take more than here
	masked      map[eventlog.Seq]bool
	lateAfter   eventlog.Seq // results after it may keep what is gone
	summary     string
}

type answer struct {
	req         assemble.Request
	asOf        eventlog.Seq
	fingerprint string
	lines       string
}

func newHistory(t *rapid.T, seen map[string]int) *history {
	h := &history{T: t, seen: seen, disk: vfs.NewMem(), worlds: make([]*world, 2)}
	h.worlds[0] = newWorld(t, memlog.New(), &scripted{answer: writes})
	h.open()
	b := &branch{id: "s"}
	h.branches = []*branch{b}
	h.say(b, eventlog.RoleSystem, "You are a careful engineer.").stays = true
	h.say(b, eventlog.RoleUser, "Find the handler that leaks.").stays = true
	for range rapid.IntRange(3, 12).Draw(t, "turns") {
		h.turn(b)
	}
	return h
}

func (h *history) open() {
	store, err := disklog.Open("log", disklog.Options{FS: h.disk})
	if err != nil {
		h.Fatal(err)
	}
	h.worlds[1] = newWorld(h, store, &scripted{answer: writes})
}

func (h *history) shut(w *world) {
	w.close()
	if err := w.store.Close(); err != nil {
		h.Error(err)
	}
}

func (h *history) close() {
	for _, w := range h.worlds {
		h.shut(w)
	}
}

func (b *branch) head() eventlog.Seq { return eventlog.Seq(len(b.said)) }

// human is the newest message of a human before an event.
func (b *branch) human(before eventlog.Seq) eventlog.Seq {
	n, _ := slices.BinarySearch(b.humans, before)
	return b.humans[n-1]
}

// append puts an event after the log on both stores.
func (h *history) append(b *branch, s saying, body eventlog.Body) *saying {
	h.drawn++
	for _, w := range h.worlds {
		push(h, w.store, b.id, eventlog.Event{ID: fmt.Sprintf("e%d", h.drawn), Body: body})
	}
	b.said = append(b.said, s)
	return &b.said[len(b.said)-1]
}

// word is a word that is no identifier.
func (h *history) word() string {
	out := "zq"
	for n := h.drawn + 1; n > 0; n /= 20 {
		out += string(rune('a' + n%20))
	}
	return out + "zq"
}

// filler is longer than a digest quotes.
var filler = strings.Repeat("what was said before goes on here for a while ", 8)

func (h *history) say(b *branch, role eventlog.Role, text string, more ...eventlog.Block) *saying {
	s := saying{first: b.head() + 1, word: h.word()}
	if role == eventlog.RoleUser {
		b.humans = append(b.humans, s.first)
	}
	m := &eventlog.Message{Role: role, Pinned: role != eventlog.RoleSystem && rapid.IntRange(0, 25).Draw(h.T, "pinned") == 0}
	s.stays = m.Pinned
	m.Blocks = append([]eventlog.Block{eventlog.Text{Text: text + "\n" + filler + "\n" + s.word}}, more...)
	return h.append(b, s, m)
}

// turn is a call with its result, which may come later, and what may come before it.
func (h *history) turn(b *branch) {
	n := b.head()
	switch rapid.IntRange(0, 11).Draw(h.T, "before") {
	case 0, 1, 2:
		h.say(b, eventlog.RoleUser, fmt.Sprintf("Look at pkg/mod%d/handler.go.", n))
	case 3:
		h.seen["boundary"]++
		h.append(b, saying{}, &eventlog.Compaction{Summary: fmt.Sprintf("The harness read %d events.", n), KeptEventIDs: []string{fmt.Sprintf("e%d", h.drawn-1), fmt.Sprintf("e%d", h.drawn)}})
	case 4:
		h.append(b, saying{}, &eventlog.Reminder{Body: fmt.Sprintf("Remember event %d.", n), DedupeKey: "k"})
	}
	n = b.head()
	id := fmt.Sprintf("call_%d", n)
	h.say(b, eventlog.RoleAssistant, "I look at the next one.", eventlog.ToolCall{CallID: id, Name: "read_file", Arguments: fmt.Sprintf(`{"path":"pkg/mod%d/handler.go"}`, n%5)})
	call := len(b.said) - 1
	if rapid.IntRange(0, 9).Draw(h.T, "late") == 0 {
		b.pending = append(b.pending, call)
		return
	}
	h.result(b, call)
}

func (h *history) result(b *branch, call int) {
	s := saying{first: b.said[call].first, stays: b.said[call].stays, word: h.word(), result: true}
	body := fmt.Sprintf("pkg/mod%d/handler.go\n%s\n%s\n%s\n%s", call%5, filler, s.word, filler, filler)
	result := eventlog.ToolResult{CallID: fmt.Sprintf("call_%d", call), ToolName: "read_file", IsError: call%4 == 0, Content: []eventlog.Block{eventlog.Text{Text: body}}}
	h.append(b, s, &eventlog.Message{Role: eventlog.RoleTool, Blocks: []eventlog.Block{result}})
}

// request draws a request with a random budget, format and policy.
func (h *history) request(b *branch) assemble.Request {
	req := summarized(byModel)
	req.SessionID = b.id
	req.Budget = budget.Spec{
		MaxTokens: rapid.SampledFrom([]uint64{1_200, 2_500, 5_000, 1_000_000}).Draw(h.T, "max_tokens"),
		Tokenizer: rapid.SampledFrom([]string{budget.TokenizerO200K, budget.TokenizerCL100K, budget.TokenizerHeuristic}).Draw(h.T, "tokenizer"),
		Format:    rapid.SampledFrom(formats).Draw(h.T, "format"),
	}
	req.Policy.Projection = rapid.SampledFrom([]projection.Options{
		{}, {Name: projection.Full}, {Name: projection.CleanToolRepair}, {Name: projection.SquashFailed}, {Name: projection.SummaryPrefix, Summary: "What the runtime says."},
		{Name: projection.ReachabilityGC}, {Name: projection.HarnessView},
		{Name: projection.CustomExpression, Expression: `tools == [] || age < 3 ? "keep" : age > 6 ? "drop" : "stub"`},
	}).Draw(h.T, "policy")
	return req
}

// both runs the same on both stores and compares the results.
func both[T any](h *history, do func(*world) (T, error), show func(T) string) (out T, err error) {
	h.Helper()
	var shown string
	for i, w := range h.worlds {
		got, failed := do(w)
		text := fmt.Sprint(failed)
		if failed == nil {
			text = show(got)
		}
		if i > 0 && text != shown {
			h.Fatalf("the stores differ: in memory\n%s\non the disk\n%s", shown, text)
		}
		out, err, shown = got, failed, text
	}
	return out, err
}

// standing are the compactions in force in a branch at an event, and void the texts of summaries of undone
// ones.
func (b *branch) standing(at eventlog.Seq) (out []decided, void []string) {
	for _, m := range b.marks {
		switch {
		case m.seq > at:
		case m.undoes == 0:
			out = append(out, m)
		default:
			n := slices.IndexFunc(out, func(d decided) bool { return d.seq >= m.undoes })
			for _, d := range out[n:] {
				void = append(void, d.summary)
			}
			out = slices.Clone(out[:n])
		}
	}
	return out, void
}

// left maps the events, up to one, that a compaction took away: true if nothing of them is shown, false if
// a part is. A result that comes late may keep its call, or bring it back.
func (b *branch) left(d decided, to eventlog.Seq) map[eventlog.Seq]bool {
	late := map[eventlog.Seq]bool{}
	for i, s := range b.said[:to] {
		late[s.first] = late[s.first] || s.result && eventlog.Seq(i+1) > d.lateAfter
	}
	out := map[eventlog.Seq]bool{}
	for i, s := range b.said[:to] {
		seq, gone := eventlog.Seq(i+1), d.gone[s.first] && !late[s.first]
		if s.word != "" && (gone || d.masked[seq]) {
			out[seq] = gone
		}
	}
	return out
}

func shownBy(r records.Projection) map[eventlog.Seq]bool {
	out := map[eventlog.Seq]bool{}
	for _, seq := range slices.Concat(r.Kept.Seqs(), r.Redacted.Seqs()) {
		out[seq] = true
	}
	return out
}

// pairs returns an error if a call has no result after it, or a result has no call.
func pairs(c *assemble.Context) error {
	var open []string
	for _, m := range c.Messages {
		for _, block := range m.Blocks {
			switch block := block.(type) {
			case eventlog.ToolCall:
				open = append(open, block.CallID)
			case eventlog.ToolResult:
				if len(open) == 0 || open[0] != block.CallID {
					return fmt.Errorf("a result of %s where %v are due", block.CallID, open)
				}
				open = open[1:]
			}
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("%v have no results", open)
	}
	return nil
}
