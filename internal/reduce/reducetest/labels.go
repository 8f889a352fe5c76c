package reducetest

import eventlog "github.com/contextd/contextd/internal/log"

// Labels are what generated messages of users and of the system are labelled with: most are
// a human's, others a notification, or a standing text, until it comes again.
var Labels = []map[string]string{
	nil, nil, nil, {"stage": "explore"},
	{eventlog.LabelInjected: "true"}, {eventlog.LabelInjected: "true"},
	{eventlog.LabelInjected: "true", eventlog.LabelStanding: "AGENTS.md"},
	{eventlog.LabelInjected: "true", eventlog.LabelStanding: "environment"},
}
