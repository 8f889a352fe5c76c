// Package render lays a reduced view out as messages and encodes them in a
// provider's format. The bytes are the product: the encoders are small, written
// out by hand, and give the same bytes for the same message on every machine.
package render

import (
	"slices"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
)

// Format is all that contextd knows of how a provider's API takes messages. What it makes
// of a message does not depend on the messages around it; only Join puts messages
// together. A Format has no state: its functions may be called from any goroutine.
type Format struct {
	// Name is what records and requests call the format: the name of its value in the
	// API's enum in lower case, without FORMAT_; empty for contextd's own.
	Name string
	// Fragments are what one message becomes. If nothing of it can be shown, there is none, or one without JSON that
	// reports why. They may share the message's strings, and belong to the caller.
	Fragments func(m Message) []Fragment
	// Join makes the provider's messages of a whole context's fragments, in order. It does not change the fragments;
	// the result may share their bytes. It is deterministic, and stable as fragments are added at the end: earlier
	// messages stay the same, except the last one, which may grow, and messages that change because Described grows.
	Join func(fragments []Fragment) []Encoded
	// OneByOne is set if Join makes one message of each fragment, independent of the others.
	OneByOne bool
	// Framing is what the provider puts around messages, in tokens.
	Framing budget.Framing
	// Reasoning reports what of a block of reasoning may be sent, its text and its seal, in a message that a model wrote;
	// model is empty if it is not known. returned is set where the API that is asked wants reasoning back. nil sends all.
	Reasoning func(t eventlog.Thinking, model string, returned bool) (text, seal bool)
	// ByModel is set if what is sent of a message depends on the model that is asked.
	ByModel bool
	// Breakpoints is set where a request marks what the provider is to cache, and
	// PromptCacheKey where it names the cache that it wants to hit.
	Breakpoints, PromptCacheKey bool
	// limits are how much media a request may have; nil for contextd's own format.
	limits *mediaLimits
	// unanswered counts what earlier messages waited for in vain, and renders ahead what Join renders again; nil where
	// nothing waits.
	unanswered func(fragments []Fragment, ended func() error) int
	// Tools are tools as a request carries them in its member tools: a JSON array; nil for
	// contextd's own format.
	Tools func(tools []Tool) []byte
}

// Described is how many of a context's first media are replaced by descriptions, because one request cannot have them
// all, and how many uses of server tools are, because they were not answered. It grows in steps, and each step changes
// earlier messages. It also renders ahead what Join renders again, until ended returns an error; the result is of no use then.
// ended may be nil.
func (f *Format) Described(fragments []Fragment, ended func() error) int {
	n := 0
	if f.limits != nil {
		n = f.limits.described(fragments)
	}
	if f.unanswered != nil {
		n += f.unanswered(fragments, ended)
	}
	return n
}

// Gauge is the gauge that counts what the format puts around messages.
func (f *Format) Gauge(a budget.Gauge) budget.Gauge { return a.Framed(f.Name, f.Framing) }

// GaugeFor is Gauge, but counts no more than counted of reasoning.
func (f *Format) GaugeFor(a budget.Gauge, counted budget.CountedReasoning) budget.Gauge {
	if f.Reasoning == nil || counted == budget.AllReasoning {
		return f.Gauge(a)
	}
	return f.Gauge(a).Sending(counted, func(t eventlog.Thinking, by string) (text, seal bool) {
		return f.Reasoning(t, by, counted == budget.ReturnedReasoning)
	})
}

// Fragment is one message, or a part of one, in a provider's format.
type Fragment struct {
	// Message is what it was made of. Where a message becomes several fragments, the
	// first has its tokens.
	Message
	// Speaker is the provider's role; fragments of one speaker may be joined.
	Speaker string
	// JSON is a whole message, or the items of one's content, separated by commas; nil if
	// the fragment only is about conversions.
	JSON []byte
	// Elsewhere is the JSON to use where the provider does not take this speaker, such as a system message after the
	// first turn.
	Elsewhere []byte
	// ID is the provider's id of the item in JSON, if it has one. If an earlier item has the same id, Elsewhere is sent
	// instead.
	ID string
	// Conversions say what could not be carried as it was.
	Conversions []Conversion
	// notes are what its format knows of its message, on the first of the message's fragments; nil if there is nothing.
	notes *notes
}

// notes are what a format knows of a message beside its fragments.
type notes struct {
	// media are what of the message is sent as media.
	media       []medium
	serverTools *serverTools
}

// Bytes is about how much memory a fragment takes beside its message, with what Join may keep of it.
func (f *Fragment) Bytes() int {
	n := len(f.JSON) + len(f.Elsewhere)
	if t := f.serverTools(); t != nil {
		const entry = 128 // of a map, or a conversion
		n += len(f.JSON) + entry*(len(t.uses)+len(t.results)+len(t.alone))
	}
	return n
}

// Encoded is one message as the provider takes it.
type Encoded struct {
	// Message is what it was made of: the blocks, events and tokens of all its parts.
	// Its origin and cause are those of the first part that is not as in the log.
	Message
	// JSON is the message's canonical bytes, on one line.
	JSON []byte
	// System is set on what goes to the request's system field rather than among its
	// messages. There is at most one, and it is the first.
	System bool
	// Passing is set if the message ends in a reminder or an injection, which the next context will not have.
	Passing bool
	// Lasting is how many items of its content come before the first that is passing.
	Lasting     int
	Conversions []Conversion
}

// Formats lists the formats, contextd's own first.
func Formats() []*Format {
	return []*Format{&contextd, &anthropic, &openAIChat, &openAIResponses, &gemini}
}

// FormatNamed returns the format of a name.
func FormatNamed(name string) (*Format, bool) {
	for _, f := range Formats() {
		if f.Name == name {
			return f, true
		}
	}
	return nil, false
}

// whole makes one message of each fragment.
func whole(fragments []Fragment) []Encoded {
	out := make([]Encoded, len(fragments))
	for i := range fragments {
		out[i] = fragments[i].encoded()
	}
	return out
}

func (f *Fragment) encoded() Encoded {
	return Encoded{Message: f.Message, JSON: f.JSON, Passing: f.passing(), Conversions: f.Conversions}
}

// lasting counts the items before the first passing fragment of a run.
func lasting(run []Fragment) int {
	n := 0
	for i := range run {
		if run[i].passing() {
			break
		}
		n += items(run[i].JSON)
	}
	return n
}

// items counts the JSON values that are in a list, separated by commas.
func items(list []byte) int {
	if len(list) == 0 {
		return 0
	}
	n, depth, inString := 1, 0, false
	for i := 0; i < len(list); i++ {
		switch c := list[i]; {
		case inString:
			if c == '\\' {
				i++
			} else if c == '"' {
				inString = false
			}
		case c == '"':
			inString = true
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		case c == ',' && depth == 0:
			n++
		}
	}
	return n
}

func (f *Fragment) passing() bool { return f.Origin == Reminder || f.Origin == Injected }

// runs merges consecutive fragments of one speaker into a message: the head that open returns, the fragments' JSON
// joined by commas, and the tail.
func runs(fragments []Fragment, open func(speaker string) (head, tail string)) []Encoded {
	var out []Encoded
	for len(fragments) > 0 {
		n := 1
		for n < len(fragments) && fragments[n].Speaker == fragments[0].Speaker {
			n++
		}
		out = append(out, joined(fragments[:n], open))
		fragments = fragments[n:]
	}
	return out
}

func joined(run []Fragment, open func(speaker string) (head, tail string)) Encoded {
	head, tail := open(run[0].Speaker)
	size := len(head) + len(tail)
	for i := range run {
		size += len(run[i].JSON) + 1
	}
	out := run[0].encoded()
	// take appends to them, but never to what the fragment has.
	out.Blocks, out.Places = slices.Clip(out.Blocks), slices.Clip(out.Places)
	out.Seqs, out.Conversions = slices.Clip(out.Seqs), slices.Clip(out.Conversions)
	out.JSON = append(append(make([]byte, 0, size), head...), run[0].JSON...)
	for i := 1; i < len(run); i++ {
		out.take(&run[i])
		out.JSON = append(append(out.JSON, ','), run[i].JSON...)
	}
	out.JSON = append(out.JSON, tail...)
	if !slices.IsSorted(out.Seqs) { // a reminder comes after later events
		slices.Sort(out.Seqs)
	}
	if out.Passing {
		out.Lasting = lasting(run)
	}
	return out
}

// take adds a fragment to the blocks, events and tokens of which the message was made.
func (e *Encoded) take(f *Fragment) {
	e.Blocks = append(e.Blocks, f.Blocks...)
	e.Places = append(e.Places, f.Places...)
	e.Seqs = append(e.Seqs, f.Seqs...)
	e.Tokens += f.Tokens
	if e.Origin == Verbatim {
		e.Origin = f.Origin
	}
	if e.Cause == "" {
		e.Cause = f.Cause
	}
	e.Passing = f.passing()
	e.Digest = e.Digest || f.Digest
	e.Conversions = append(e.Conversions, f.Conversions...)
}
