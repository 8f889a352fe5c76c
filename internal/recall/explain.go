package recall

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/contextd/contextd/internal/explain"
	eventlog "github.com/contextd/contextd/internal/log"
)

// explained says whether the model saw a text, and where it is.
func (s Session) explained(ctx context.Context, a arguments) (string, error) {
	const longest = 4096 // characters, as of ExplainCall
	text, err := a.text("text")
	if err != nil {
		return "", err
	}
	call, err := a.number("call", largestInt)
	if err != nil {
		return "", err
	}
	switch {
	case text == "":
		return "", mistaken("%s needs a text or a pointer: %s(text: \"ctx:12.0\")", Explain, Explain)
	case len([]rune(text)) > longest:
		return "", mistaken("text of %s must not be longer than %d characters; a line of it is enough", Explain, longest)
	}
	x, err := s.Explain(ctx, uint32(call), text)
	if missing, ok := errors.AsType[*eventlog.NotFoundError](err); ok && missing.Kind != "session" {
		if missing.Kind == "pointer" {
			at, err := s.parsePointer(text)
			if err != nil {
				return "", err
			}
			return "", s.missing(ctx, at)
		}
		return "", mistaken("%v; without call the newest is explained", err)
	}
	if invalid, ok := errors.AsType[*eventlog.InvalidError](err); ok {
		return "", mistaken("%s", invalid.Reason)
	}
	if err != nil {
		return "", err
	}
	return sightings(text, x), nil
}

func sightings(text string, x explain.Explanation) string {
	of := "the context that would be made now; none is recorded"
	switch {
	case x.Call.Number > 0:
		of = fmt.Sprintf("the context of call %d", x.Call.Number)
	case x.Projection != nil && x.Projection.ID != "":
		of = fmt.Sprintf("the newest context, %s as of event %d", x.Projection.ID, x.Projection.AsOf)
	}
	was := "was not"
	if x.Seen {
		was = "was"
	}
	if len(x.Sightings) == 0 {
		where := "It is neither in the log nor in what contextd wrote"
		if x.Seen {
			where = "It is in no single block"
		}
		return fmt.Sprintf("[contextd: %s %s in %s. %s.]", quoted(text), was, of, where)
	}
	var out strings.Builder
	fmt.Fprintf(&out, "[contextd: %s %s in %s. Where it is, and what the context showed of it:]\n", quoted(text), was, of)
	for _, place := range x.Sightings {
		where := place.Pointer
		switch {
		case where == "" && place.Seq > 0:
			where = fmt.Sprintf("event %d", place.Seq)
		case where == "":
			where = "written by contextd"
		}
		seen := "not readable there"
		if place.Seen {
			seen = "readable there"
		}
		fmt.Fprintf(&out, "%s: %s, %s", where, place.Shown, seen)
		if place.Reason != "" {
			fmt.Fprintf(&out, " (%s)", place.Reason)
		}
		out.WriteByte('\n')
	}
	return out.String()
}
