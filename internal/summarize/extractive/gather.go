package extractive

import (
	"strings"

	"github.com/contextd/contextd/internal/ledger"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
)

// span has the texts from which a summary is picked.
type span struct {
	excerpts []*excerpt
	names    []use
	index    map[string]int32 // name → place in names
	clock    int              // texts taken in
}

// use says how a name was used.
type use struct {
	texts     int // how many texts held it
	arguments int // how many calls were made with it
	last      int // the newest of those texts
	shown     int // how many picked excerpts show it
}

// gather reads an older text and the groups after it.
func gather(older string, groups []*reduce.Group) *span {
	s := &span{index: map[string]int32{}}
	s.older(older)
	for _, g := range groups {
		s.group(g)
	}
	return s
}

// older reads the text of an earlier summary, without the calls and results that earlier builds picked. It treats
// lines without a heading as prose.
func (s *span) older(text string) {
	if text == nothing {
		return
	}
	var from source
	start := 0
	block := func(text string) {
		if from.seq == 0 || from.origin == said {
			s.block(from, text)
		}
	}
	for at := 0; at < len(text); {
		end := len(text)
		if n := strings.IndexByte(text[at:], '\n'); n >= 0 {
			end = at + n
		}
		if h, ok := parseHeading(text[at:end]); ok {
			block(text[start:at])
			from, start = h, min(end+1, len(text))
		}
		at = end + 1
	}
	block(text[start:])
}

// group reads what the assistant said, and the names in the arguments of its calls.
func (s *span) group(g *reduce.Group) {
	for m := range g.Messages {
		if g.Messages[m].Role != eventlog.RoleAssistant {
			continue
		}
		for _, b := range g.Messages[m].Blocks {
			switch v := b.Block.(type) {
			case eventlog.Text:
				excerpts := s.block(source{b.Seq, b.Index, said}, v.Text)
				if len(g.Calls) == 0 && len(excerpts) > 0 {
					// Such a message ends a piece of work, and its end says how.
					excerpts[len(excerpts)-1].floor = concludedFloor
				}
			case eventlog.ToolCall:
				s.clock++
				arguments := v.Arguments[:boundary(v.Arguments, scanBytes)]
				ledger.Identifiers(arguments, func(start, end int) bool {
					s.name(arguments[start:end], true)
					return true
				})
			}
		}
	}
}

// name counts one use for each text.
func (s *span) name(name string, argument bool) int32 {
	i, ok := s.index[name]
	if !ok {
		i = int32(len(s.names))
		s.index[name] = i
		s.names = append(s.names, use{})
	}
	u := &s.names[i]
	if u.last != s.clock {
		u.last = s.clock
		u.texts++
		if argument {
			u.arguments++
		}
	}
	return i
}
