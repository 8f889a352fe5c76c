package transcript

import (
	"strings"

	"github.com/google/uuid"
)

// names is the namespace of the ids that writers make.
var names = uuid.MustParse("8f9b1c52-6a0e-5d7c-9a55-2f1f0f3d7e41")

// UUID makes an id from parts, the same for the same parts.
func UUID(parts ...string) string {
	return uuid.NewSHA1(names, []byte(strings.Join(parts, "\x00"))).String()
}

// IsUUID reports whether an id has the form of one.
func IsUUID(id string) bool { return len(id) == 36 && uuid.Validate(id) == nil }

// SessionID makes an id for a session that has none, from the ids of its events.
func SessionID(s Session) string {
	parts := make([]string, 0, len(s.Events)+1)
	parts = append(parts, "session")
	for _, e := range s.Events {
		parts = append(parts, e.ID)
	}
	return UUID(parts...)
}
