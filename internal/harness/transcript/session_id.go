package transcript

// SessionID makes an id for a session that has none, from the ids of its events.
func SessionID(s Session) string {
	parts := make([]string, 0, len(s.Events)+1)
	parts = append(parts, "session")
	for _, e := range s.Events {
		parts = append(parts, e.ID)
	}
	return UUID(parts...)
}
