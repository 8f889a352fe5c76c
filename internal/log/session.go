package log

import "fmt"

// ValidateSessionID checks the id of a session to be made; field names it in the
// error.
func ValidateSessionID(field, id string) error {
	if id == "" {
		return &InvalidError{field, "must not be empty"}
	}
	if err := validateTexts(text{field, id}); err != nil {
		return err
	}
	return nil
}

// Validate checks what a session is made from.
func (s Session) Validate() error {
	if err := ValidateSessionID("session_id", s.ID); err != nil {
		return err
	}
	if err := validateLabels(s.Labels); err != nil {
		return err
	}
	return nil
}

// Matches reports whether the session has all the labels.
func (s Session) Matches(labels map[string]string) bool {
	for k, v := range labels {
		if got, ok := s.Labels[k]; !ok || got != v {
			return false
		}
	}
	return true
}

// Validate checks the page's size.
func (q SessionQuery) Validate() error {
	if q.Limit < 0 {
		return &InvalidError{"page_size", "must not be negative"}
	}
	return nil
}

// Validate checks what a fork is made from; head is its parent's.
func (r ForkRequest) Validate(head Seq) error {
	if err := ValidateSessionID("new_session_id", r.NewID); err != nil {
		return err
	}
	if r.At > head {
		return &InvalidError{"at_seq", fmt.Sprintf("%d is after the log's head %d", r.At, head)}
	}
	if err := validateLabels(r.Labels); err != nil {
		return err
	}
	return nil
}

// ValidateArtifacts checks the keys of artifacts that are put together.
func ValidateArtifacts(all []Artifact) error {
	type key struct {
		kind string
		seq  Seq
		id   string
	}
	seen := make(map[key]bool, len(all))
	for _, a := range all {
		k := key{a.Kind, a.Seq, a.ID}
		switch {
		case a.Kind == "":
			return &InvalidError{"artifact.kind", "must not be empty"}
		case seen[k]:
			return &InvalidError{"artifact.id", fmt.Sprintf("%q is put twice at once", a.ID)}
		}
		seen[k] = true
	}
	return nil
}
