package assemble

import (
	"context"
	"fmt"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/records"
	"github.com/contextd/contextd/internal/summarize"
)

// Explanation says what the model saw in a recorded call.
type Explanation struct {
	Call records.ModelCall
	// Projection is what the call was made from; nil if none was named.
	Projection *records.Projection
	// Pointers are the record's, completed from the log.
	Pointers []PointerFacts
	// Seen says that the text was in what was sent, injections left out: they are
	// not kept.
	Seen bool
	// Sightings are at most maxSightings places, those that contextd wrote first, then
	// those of the log in its order.
	Sightings []Sighting
}

// maxSightings bounds the places that one explanation names.
const maxSightings = 100

// Sighting is a place where a text is.
type Sighting struct {
	// Seq and Block are the place in the log; Seq is 0 for what contextd wrote.
	Seq   eventlog.Seq
	Block int
	Shown Shown
	// Seen says that the text itself could be read at this place.
	Seen bool
	// Reason says why it could not, or what changed the place; empty if nothing did.
	Reason string
	// Pointer is what Resolve takes; empty if the text is in no block of the log.
	Pointer string
}

// Shown says what a context shows of a place.
type Shown string

// What a context may show of a place in the log, and what contextd writes itself.
const (
	ShownVerbatim  Shown = "verbatim"
	ShownStubbed   Shown = "stubbed"
	ShownClipped   Shown = "clipped"
	ShownOmitted   Shown = "omitted"
	ShownCollapsed Shown = "collapsed"
	ShownLater     Shown = "later" // appended after the call

	ShownSummary  Shown = "summary"
	ShownLedger   Shown = "ledger"
	ShownIndex    Shown = "index"
	ShownQuote    Shown = "quote"
	ShownReminder Shown = "reminder"
)

// Explain says what the model saw of a text, or of the block that a pointer names, in
// a recorded call, number 0 the newest. An empty text asks for the call alone.
// *eventlog.NotFoundError if there is no such session, call or block;
// *eventlog.InvalidError where the call cannot say what was sent.
func (e *Engine) Explain(ctx context.Context, sessionID string, number uint32, text string) (Explanation, error) {
	// A session of its own, so that nothing kept in memory can flatter the answer.
	s := &session{id: sessionID}
	s.reset()
	info, err := s.look(ctx, e.store)
	if err != nil {
		return Explanation{}, err
	}
	call, err := records.GetCall(ctx, e.store, sessionID, number)
	if err != nil {
		return Explanation{}, err
	}
	out := Explanation{Call: call}
	if call.ProjectionID == "" {
		if text != "" {
			return Explanation{}, unknowable("call %d named no projection, so nobody knows what was sent", call.Number)
		}
		return out, nil
	}
	r, err := call.Sent(ctx, e.store)
	if err != nil {
		return Explanation{}, err
	}
	out.Projection = &r
	p, err := e.again(ctx, s, r)
	if err != nil {
		return Explanation{}, err
	}
	out.Pointers = new(describedBlocks).facts(r.Pointers, p.conv.Groups())
	if text == "" {
		return out, nil
	}
	x := &explainer{engine: e, sessionID: sessionID, record: r, projected: p, search: newSearch(text), head: info.Head}
	if r.After.Summary != "" {
		if x.summary, err = e.summaryInForce(ctx, s, p.conv, r); err != nil {
			return Explanation{}, err
		}
	}
	f, err := format(r)
	if err != nil {
		return Explanation{}, err
	}
	messages := s.encode(p, f).messages
	if err := ctx.Err(); err != nil {
		return Explanation{}, err
	}
	if other := difference(r, remade(r, p, messages)); other != "" {
		return Explanation{}, unknowable("the context of call %d cannot be rebuilt (%s)", call.Number, other)
	}
	if out.Seen, out.Sightings, err = x.explain(ctx, messages); err == nil {
		_, err = s.look(ctx, e.store)
	}
	return out, err
}

// remade is the record with what its projection came out as this time.
func remade(r records.Projection, p projected, messages []Message) records.Projection {
	r.PrefixHash, r.MessageCount, r.Tokens = hashOf(messages), len(messages), p.tokens()
	return r
}

// unknowable refuses a text, not the call: without one the call can be explained.
func unknowable(format string, args ...any) error {
	return &eventlog.InvalidError{Field: "text", Reason: fmt.Sprintf(format, args...)}
}

// explainer looks for a text in one projection and in the log that it was made from.
type explainer struct {
	engine    *Engine
	sessionID string
	record    records.Projection
	projected
	search
	head    eventlog.Seq
	summary *summarize.Summary // the one in force; nil if there was none
	sent    sentBytes

	places    map[eventlog.Place]shownBlock
	causes    []collapse
	sightings []Sighting
}

// explain returns whether the text was sent, and where it is.
func (x *explainer) explain(ctx context.Context, messages []Message) (bool, []Sighting, error) {
	if x.pointer != nil && x.pointer.Seq > x.head {
		return false, nil, x.missing()
	}
	var err error
	if x.causes, err = x.engine.collapses(ctx, x.sessionID, x.record); err != nil {
		return false, nil, err
	}
	x.sent = readSent(messages)
	x.lookUp()
	x.written()
	if err := ctx.Err(); err != nil {
		return false, nil, err
	}
	seen, err := x.logged(ctx)
	if err != nil || x.pointer != nil {
		return seen, x.sightings, err
	}
	x.formatted()
	return x.sent.anywhere(x.text), x.sightings, nil
}

func (x *explainer) missing() error {
	return &eventlog.NotFoundError{Kind: "pointer", Name: x.text}
}

// add keeps a sighting while there is room.
func (x *explainer) add(s Sighting) {
	if len(x.sightings) < maxSightings {
		x.sightings = append(x.sightings, s)
	}
}
