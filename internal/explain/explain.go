// Package explain finds out what a recorded context showed of a text or of a block of the log,
// and why it did not show the rest.
package explain

import (
	"context"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/pointers"
	"github.com/contextd/contextd/internal/records"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/render"
	"github.com/contextd/contextd/internal/summarize"
)

// Explanation says what the model saw in a recorded call.
type Explanation struct {
	Call records.ModelCall
	// Projection is the record of the context that was sent; nil if the call named no projection.
	Projection *records.Projection
	// Pointers are Projection's pointers, completed with facts from the log.
	Pointers []pointers.Facts
	// Seen says that the text was sent. Injections are not searched, because they are not stored.
	Seen bool
	// Sightings are at most maxSightings places: first those in texts that contextd wrote, such as the digest, then
	// those in the log, in its order.
	Sightings []Sighting
}

// maxSightings bounds the places that one explanation names.
const maxSightings = 100

// Sighting is a place that has the text.
type Sighting struct {
	// Seq and Block are the place in the log; Seq is 0 for texts that contextd wrote.
	Seq   eventlog.Seq
	Block int
	Shown Shown
	// Seen says that the text itself could be read at this place.
	Seen bool
	// Reason says why the text could not be read, or what changed the place; empty if nothing did.
	Reason string
	// Pointer is the pointer to the block; empty if the text is in no block of the log.
	Pointer string
}

// Shown says what a context shows of a place.
type Shown string

// The first group says how a place in the log is shown, the second names texts that contextd wrote.
const (
	ShownVerbatim  Shown = "verbatim"
	ShownStubbed   Shown = "stubbed"
	ShownClipped   Shown = "clipped"
	ShownOmitted   Shown = "omitted"
	ShownCollapsed Shown = "collapsed"
	ShownLater     Shown = "later" // appended after the call

	ShownSummary  Shown = "summary"
	ShownLedger   Shown = "ledger"
	ShownFiles    Shown = "files"
	ShownIndex    Shown = "index"
	ShownQuote    Shown = "quote"
	ShownReminder Shown = "reminder"
)

// Context is a recorded context, computed again to the same bytes.
type Context struct {
	SessionID    string
	Record       records.Projection
	Conversation *reduce.Conversation
	Result       reduce.Result
	// Messages are the messages of the context, without its injections.
	Messages []render.Encoded
	// Summary is the summary that the context quotes; nil if it quotes none.
	Summary *summarize.Summary
	// Head is the current head of the log.
	Head eventlog.Seq
}

// Store has what is read to explain a context: the log, and the records of earlier contexts.
type Store interface {
	eventlog.Reader
	eventlog.Artifacts
}

// Find reports whether a text was sent, and where it is. If the text is a pointer, it looks for the block that the
// pointer names: *eventlog.NotFoundError if there is none.
func Find(ctx context.Context, store Store, c Context, text string) (seen bool, all []Sighting, err error) {
	x := &explainer{Context: c, store: store, search: newSearch(text)}
	return x.explain(ctx)
}

// explainer looks for a text in one projection and in the log from which that was made.
type explainer struct {
	Context
	store Store
	search
	sent sentBytes

	places    map[eventlog.Place]shownBlock
	fates     []reduce.ReminderFate // of the conversation's reminders; nil until one is asked for
	causes    []collapse
	sightings []Sighting
}

// explain reports whether the text was sent, and where it is.
func (x *explainer) explain(ctx context.Context) (bool, []Sighting, error) {
	if x.pointer != nil && x.pointer.Seq > x.Head {
		return false, nil, x.missing(eventlog.EventsThere(x.Head))
	}
	var err error
	if x.causes, err = collapses(ctx, x.store, x.SessionID, x.Record); err != nil {
		return false, nil, err
	}
	x.sent = readSent(ctx, x.Messages, x.text)
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
	return x.sent.anywhere, x.sightings, nil
}

// missing returns the error for a pointer to a block that does not exist; there says what exists.
func (x *explainer) missing(there string) error {
	return &eventlog.NotFoundError{Kind: "pointer", Name: x.text, There: there}
}

// add appends a sighting, unless there are maxSightings already.
func (x *explainer) add(s Sighting) {
	if !x.full() {
		x.sightings = append(x.sightings, s)
	}
}

func (x *explainer) full() bool { return len(x.sightings) >= maxSightings }
