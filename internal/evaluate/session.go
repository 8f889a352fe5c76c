package evaluate

import (
	"strings"

	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/harness"
	"github.com/contextd/contextd/internal/ledger"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
)

// Session is a recorded session with its model calls.
type Session struct {
	// File is the path of its transcript, and Format the harness that wrote it.
	File, Format string
	// Suffix is the suffix of the session's id, if this is not the main conversation of its file.
	Suffix string
	// Events are the events of the log, as they were admitted.
	Events []eventlog.Event
	Steps  []Step
	texts  []placed
}

// Step is one model call: the log before it, and what the model then asked for.
type Step struct {
	// Before is how many events the log had.
	Before int
	// Wanted are those identifiers in the arguments of its calls that occur earlier in the log.
	Wanted []string
	// Lines are the lines that its edits must reproduce exactly and that occur earlier in the log.
	Lines []string
	// Calls is how many calls the log had.
	Calls int
}

// placed is a text of the log with its event, to find where an identifier occurs.
type placed struct {
	seq  eventlog.Seq
	text string
}

// NewSession finds the steps of a session.
func NewSession(file, format string, events []eventlog.Event, gauge budget.Gauge) *Session {
	s := &Session{File: file, Format: format, Events: events}
	conv := reduce.NewConversation(gauge)
	calls := make([]int, len(events)+1) // before each event
	for i, e := range events {
		conv.Append(e)
		calls[i+1] = calls[i] + callsOf(e)
		s.texts = append(s.texts, textsOf(e)...)
	}
	said := earlier{identifiers: map[string]bool{}}
	for i, g := range conv.Groups() {
		if g.Kind != reduce.KindTurn || i == 0 || g.First == 1 {
			continue
		}
		said.add(s.texts, g.First)
		s.Steps = append(s.Steps, Step{Before: int(g.First) - 1, Calls: calls[g.First-1], Wanted: said.wanted(g), Lines: said.lines(g)})
	}
	return s
}

// textsOf returns the texts of a message.
func textsOf(e eventlog.Event) (out []placed) {
	if m, ok := e.Body.(*eventlog.Message); ok {
		for _, b := range m.Blocks {
			for text := range strings.SplitSeq(Plain(b), "\x00") {
				out = append(out, placed{e.Seq, text})
			}
		}
	}
	return out
}

// earlier collects the texts before a step.
type earlier struct {
	next        int // the first text that was not added yet
	text        strings.Builder
	identifiers map[string]bool
}

// add adds the texts before an event.
func (s *earlier) add(texts []placed, before eventlog.Seq) {
	for ; s.next < len(texts) && texts[s.next].seq < before; s.next++ {
		text := texts[s.next].text
		s.text.WriteString(text + "\x00")
		ledger.Identifiers(text, func(a, b int) bool {
			s.identifiers[text[a:b]] = true
			return true
		})
	}
}

// wanted returns the identifiers, without duplicates, in the arguments of a turn's calls that occurred before
// it.
func (s *earlier) wanted(g *reduce.Group) (out []string) {
	once := map[string]bool{}
	for _, c := range g.Calls {
		arguments := ledger.Decode(c.Arguments)
		ledger.Identifiers(arguments, func(a, b int) bool {
			name := arguments[a:b]
			if s.identifiers[name] && !once[name] {
				once[name] = true
				out = append(out, name)
			}
			return true
		})
	}
	return out
}

// lines returns the lines that a turn's edits must reproduce and that occurred before it.
func (s *earlier) lines(g *reduce.Group) (out []string) {
	for _, line := range mustReproduce(g) {
		if shows(s.text.String(), line) {
			out = append(out, line)
		}
	}
	return out
}

func callsOf(e eventlog.Event) int {
	n := 0
	if m, ok := e.Body.(*eventlog.Message); ok {
		for _, b := range m.Blocks {
			if _, ok := b.(eventlog.ToolCall); ok {
				n++
			}
		}
	}
	return n
}

// Plain returns the text of a block as the model reads it: without the escapes of JSON.
func Plain(b eventlog.Block) string {
	switch b := b.(type) {
	case eventlog.Text:
		return ledger.Decode(b.Text)
	case eventlog.Thinking:
		return b.Text
	case eventlog.ToolCall:
		return b.Name + "\x00" + ledger.Decode(b.Arguments)
	case eventlog.ToolResult:
		var all []string
		for _, c := range b.Content {
			all = append(all, Plain(c))
		}
		return strings.Join(all, "\x00")
	case eventlog.ProviderBlock:
		return b.JSON
	default:
		return ""
	}
}

// evidenceBytes is how many bytes of text on either side of an identifier a prompt must have to count as evidence.
const evidenceBytes = 20

// present reports whether context has the identifier, and whether it has it with the text around one of its
// occurrences in the events up to before.
func (s *Session) present(context, name string, before int) (recalled, evident bool) {
	if !strings.Contains(context, name) {
		return false, false
	}
	tried := map[string]bool{}
	for i := len(s.texts) - 1; i >= 0; i-- {
		if int(s.texts[i].seq) > before {
			continue
		}
		text := s.texts[i].text
		for at := 0; ; {
			k := strings.Index(text[at:], name)
			if k < 0 {
				break
			}
			from, to := max(at+k-evidenceBytes, 0), min(at+k+len(name)+evidenceBytes, len(text))
			around := text[from:to]
			if !tried[around] {
				tried[around] = true
				if strings.Contains(context, around) {
					return true, true
				}
			}
			at += k + len(name)
			if len(tried) > 300 {
				return true, false
			}
		}
	}
	return true, false
}

// SessionOf makes a Session of a session in a harness's file. The error is eventlog.Head.Admit's.
func SessionOf(file, harnessName string, part harness.Session, gauge budget.Gauge) (*Session, error) {
	_, admitted, err := eventlog.Head{}.Admit(part.Events)
	if err != nil {
		return nil, err
	}
	for i := range admitted {
		admitted[i].Tokens = gauge.CountEvent(admitted[i])
	}
	s := NewSession(file, harnessName, admitted, gauge)
	s.Suffix = part.Suffix
	return s, nil
}
