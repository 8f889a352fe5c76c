package openhands

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
)

// eventFile matches the name of a file with one event, and the event's number, as the SDK and the versions
// before it write them.
var eventFile = regexp.MustCompile(`^(?:event-(\d{5,18})(?:-[0-9a-fA-F-]+)?|(\d{1,18}))\.json$`)

// folder returns the files of a conversation that is stored as one file for each event, in the order of the
// events.
func folder(name string, files []string) []string {
	if name != "events" {
		return nil
	}
	type event struct {
		number int
		file   string
	}
	var events []event
	for _, file := range files {
		if m := eventFile.FindStringSubmatch(file); m != nil {
			n, _ := strconv.Atoi(cmp.Or(m[1], m[2])) // a number, and not too long
			events = append(events, event{n, file})
		}
	}
	slices.SortFunc(events, func(a, b event) int {
		return cmp.Or(cmp.Compare(a.number, b.number), cmp.Compare(a.file, b.file))
	})
	out := make([]string, len(events))
	for i, e := range events {
		out[i] = e.file
	}
	return out
}
