package log

// Labels of an event that reduction reads. All others are the client's own marks.
const (
	// LabelInjected is "true" on a message that no human and no model wrote: the runtime
	// put it in.
	LabelInjected = "harness.injected"
	// LabelStanding names what an injected message tells of, such as "AGENTS.md" or
	// "environment": it holds until a newer one of the same name. An injected message
	// without it is a notification.
	LabelStanding = "harness.standing"
)

// Injected reports whether the runtime put the event's message in, so that it is no
// human's, whatever its role.
func (e Event) Injected() bool { return e.Labels[LabelInjected] == "true" }
