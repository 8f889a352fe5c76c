package harness

import "github.com/contextd/contextd/internal/harness/transcript"

// All lists the registry.
func All() []transcript.Harness { return registry }
