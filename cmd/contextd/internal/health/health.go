// Package health names the parts of a daemon whose health is reported one by one: as services of
// grpc.health.v1 and in metrics.
package health

import "strings"

// prefix begins the names of parts, so that no service of the API has one of them.
const prefix = "contextd.part."

// The parts that daemons have.
const (
	// Store fails for good where the store does: the daemon takes no more work. It also
	// fails while the store's disk is full: then appends are refused, and the rest goes on.
	Store = prefix + "store"
	// Hooks fails while a runtime that serves hooks does not answer in time.
	Hooks = prefix + "hooks"
	// Callers, where files say who may call, fails while one of them is wrong and what was read
	// before is in force, and when the daemon's certificate has expired.
	Callers = prefix + "callers"
)

// Summarizer is the part of a summarizer's name. It fails while the summarizer is not asked
// because its requests failed.
func Summarizer(name string) string { return prefix + "summarizer." + name }

// Part is a part of the daemon.
type Part struct {
	Name string
	// Healthy may be called from any goroutine and does not wait.
	Healthy func() bool
}

// Label is the part's name for people, or false for a service of the API.
func Label(name string) (string, bool) { return strings.CutPrefix(name, prefix) }
