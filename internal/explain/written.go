package explain

import (
	"context"
	"fmt"
	"strings"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/records"
	"github.com/contextd/contextd/internal/reduce"
)

// writtenAs maps the sections of a digest to sightings. Other sections, such as the digest's heading, are
// not searched.
var writtenAs = map[reduce.SectionKind]Shown{
	reduce.SectionSummary: ShownSummary, reduce.SectionQuotes: ShownQuote, reduce.SectionLedger: ShownLedger, reduce.SectionFiles: ShownFiles, reduce.SectionIndex: ShownIndex,
}

// written searches the texts that contextd wrote about dropped groups: the digest as sent, and the texts stored with
// the summary in force.
func (x *explainer) written() {
	sent := map[Shown]bool{}
	look := func(shown Shown, text string) {
		switch {
		case sent[shown]: // the ledger and the quotes have several sections
		case x.pointer != nil && x.names(text):
			sent[shown] = true
			x.add(Sighting{Shown: shown, Reason: "it names the pointer"})
		case x.pointer == nil && strings.Contains(text, x.text):
			sent[shown] = true
			x.add(Sighting{Shown: shown, Seen: true})
		}
	}
	digest, _ := x.Result.View.Digest()
	for _, section := range digest.Sections() {
		if shown, ok := writtenAs[section.Kind]; ok {
			look(shown, section.Text)
		}
	}
	for i := range x.Result.View.Len() {
		if d := x.Result.View.Dropped(i); d != nil {
			look(ShownLedger, d.Text)
		}
	}
	if x.Summary == nil || x.pointer != nil {
		return
	}
	for _, kept := range []struct {
		shown  Shown
		text   string
		reason string
	}{
		{ShownSummary, x.Summary.Text, "the text of summary %s holds it, but not as it is quoted in this context"},
		{ShownLedger, x.Summary.Ledger, "the ledger kept with summary %s holds it; in this context's share there was no room"},
		{ShownIndex, x.Summary.Index, "the index kept with summary %s holds it; in this context's share there was no room, or it is elsewhere"},
	} {
		if !sent[kept.shown] && strings.Contains(kept.text, x.text) {
			x.add(Sighting{Shown: kept.shown, Reason: fmt.Sprintf(kept.reason, x.Summary.ID)})
		}
	}
}

// collapse is a recorded projection at which more groups were dropped than before.
type collapse struct {
	through    eventlog.Seq
	projection string
	why        string
}

// collapses lists, oldest first, the projections that dropped the groups that record r does not show.
func collapses(ctx context.Context, store eventlog.Artifacts, sessionID string, r records.Projection) ([]collapse, error) {
	if r.After.CollapsedThrough == 0 {
		return nil, nil
	}
	var out []collapse
	for older, err := range records.Projections(ctx, store, sessionID, eventlog.ArtifactQuery{To: r.AsOf}) {
		if err != nil {
			return nil, err
		}
		through := older.After.CollapsedThrough
		if older.Fingerprint == r.Fingerprint && through > older.Before.CollapsedThrough && through <= r.After.CollapsedThrough {
			out = append(out, collapse{through, older.ID, causeOf(older)})
		}
		if older.ID == r.ID {
			break
		}
	}
	return out, nil
}

// causeOf returns why a projection dropped groups; empty if its record does not say.
func causeOf(r records.Projection) string {
	if len(r.Steps) == 0 {
		return ""
	}
	// The note begins with the pipeline's cause; after "; " comes what the first reducer did.
	cause, _, noted := strings.Cut(r.Steps[0].Note, "; ")
	if !noted {
		return ""
	}
	return cause
}

// left says how a group was dropped.
func (x *explainer) left(g *reduce.Group) string {
	reason := fmt.Sprintf("it was dropped with the groups through event %d", x.Result.State.CollapsedThrough)
	if d := x.Conversation.Decided(); d.Drops(g) {
		reason = fmt.Sprintf("it was dropped by the compaction at event %d", d.Seq)
		if x.Summary != nil && g.First <= x.Summary.To {
			reason += "; summary " + x.Summary.ID + " replaces it"
		}
		return reason
	}
	for _, c := range x.causes {
		if g.First > c.through {
			continue
		}
		reason = fmt.Sprintf("it was dropped with the groups through event %d, at projection %s", c.through, c.projection)
		if c.why != "" {
			reason += " (" + c.why + ")"
		}
		break
	}
	if x.Summary != nil && g.First <= x.Summary.To {
		return reason + "; summary " + x.Summary.ID + " replaces it"
	}
	return reason
}
