package transcript

// Labels returns the labels so far, to be read only.
func (s *SessionBuilder) Labels() map[string]string { return s.session.Labels }
