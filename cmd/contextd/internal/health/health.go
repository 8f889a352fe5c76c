// Package health names the parts of a daemon whose health is reported separately: as services of
// grpc.health.v1, and in metrics.
package health

import "strings"

// prefix begins the names of parts, so that none equals the name of a service of the API.
const prefix = "contextd.part."

// The parts that daemons have.
const (
	// Store is unhealthy for good once the store failed: the daemon then refuses all work. It is also
	// unhealthy while the store's disk is full: then only appends are refused.
	Store = prefix + "store"
	// Hooks is unhealthy while a runtime's hook does not answer in time.
	Hooks = prefix + "hooks"
	// Callers is unhealthy while a file of credentials is invalid, so that its last valid content is in
	// force, and when the daemon's certificate has expired.
	Callers = prefix + "callers"
)

// Summarizer names the part for a summarizer. It is unhealthy while the summarizer's breaker is open after
// failed requests.
func Summarizer(name string) string { return prefix + "summarizer." + name }

// Part is a part of the daemon.
type Part struct {
	Name string
	// Healthy may be called from any goroutine and does not wait.
	Healthy func() bool
}

// Label is the part's name for people; ok is false for a service of the API.
func Label(name string) (string, bool) { return strings.CutPrefix(name, prefix) }
