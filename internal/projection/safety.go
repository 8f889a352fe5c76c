package projection

import (
	"fmt"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
)

// SafetyBlocked begins the reason of an Applied that signatures kept from doing more.
const SafetyBlocked = "provider_safety_blocked"

// sealedGroups are groups that a policy would have touched, had their reasoning not
// been signed or encrypted by a provider. The zero value is none.
type sealedGroups struct {
	count int
	first eventlog.Seq
}

func (s *sealedGroups) add(g *reduce.Group) {
	if s.count == 0 {
		s.first = g.First
	}
	s.count++
}

// reason is empty if there are none.
func (s sealedGroups) reason() string {
	if s.count == 0 {
		return ""
	}
	return fmt.Sprintf("%s: %d groups with signed or encrypted reasoning stay as they are, the first at event %d", SafetyBlocked, s.count, s.first)
}
