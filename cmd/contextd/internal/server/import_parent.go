package server

import (
	"context"
	"errors"
	"maps"
	"strings"
	"unicode/utf8"

	"github.com/contextd/contextd/internal/harness"
	"github.com/contextd/contextd/internal/harness/transcript"
	eventlog "github.com/contextd/contextd/internal/log"
)

// parentOf finds the session that began a subagent whose transcript is a file of its own,
// and adds the call to the labels. Ids identify it: the file is below a folder of the name
// of its parent's session, as the harness lays it out. "" if there is none.
func (s *Server) parentOf(ctx context.Context, id string, part harness.Session, labels map[string]string) (string, map[string]string, error) {
	began := harness.SubagentOf(part)
	above := id
	for began != "" {
		i := strings.LastIndexByte(above, '/')
		if i < 0 {
			return "", labels, nil
		}
		if above = above[:i]; above != began && !strings.HasSuffix(above, "/"+began) {
			continue
		}
		parent, err := s.store.Session(ctx, above)
		var missing *eventlog.NotFoundError
		if errors.As(err, &missing) || err == nil && parent.Labels[transcript.LabelSessionID] != began {
			continue
		}
		if err != nil {
			return "", nil, err
		}
		labels, err = s.begunBy(ctx, parent, part, labels)
		return parent.ID, labels, err
	}
	return "", labels, nil
}

// begunBy adds to a subagent's labels the call of its parent that started it, if exactly one call may have.
func (s *Server) begunBy(ctx context.Context, parent eventlog.Session, part harness.Session, labels map[string]string) (map[string]string, error) {
	found := ""
	for e, err := range s.store.Read(ctx, parent.ID, 1, parent.Head) {
		if err != nil {
			return nil, err
		}
		if call, ok := harness.BeganBy(part, e); ok {
			if found != "" {
				return labels, nil
			}
			found = call
		}
	}
	if found == "" || utf8.RuneCountInString(found) > transcript.MaxLabelValue {
		return labels, nil
	}
	labels = maps.Clone(labels)
	labels[labelParentCall] = found
	return labels, nil
}
