package transcript

// Labels returns the labels so far, to be read only.
func (s *SessionBuilder) Labels() map[string]string { return s.session.Labels }

// DropDuplicate counts an entry that a reader found to repeat another, where it makes
// no event of its own that would show it.
func (b *Builder) DropDuplicate() { b.t.DroppedDuplicates++ }
