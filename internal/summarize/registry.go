package summarize

import (
	"fmt"
	"maps"
	"slices"
	"time"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/scrub"
)

// Summarizer is a backend with its settings in the configuration.
type Summarizer struct {
	Backend Backend
	// Timeout is the time limit of each request, including all attempts of the backend; 0 is DefaultTimeout.
	Timeout time.Duration
	// CoolDown is how long the summarizer is not asked after three failures in a row; 0 is DefaultCoolDown.
	CoolDown time.Duration
	// MaxInputTokens is the most tokens of one request if the proposal does not say; 0 is DefaultMaxInputTokens.
	// Rules have no such limit.
	MaxInputTokens uint64
	// Scrub replaces credentials in requests; nil for a backend of the same party that wrote the session. Rules
	// always get the groups unscrubbed.
	Scrub *scrub.Scrubber
}

// The defaults of a Summarizer.
const (
	DefaultTimeout        = 2 * time.Minute
	DefaultCoolDown       = time.Minute
	DefaultMaxInputTokens = 16_000
)

// Registry has the summarizers by name. It may be used from any goroutine, but by only one scheduler.
type Registry struct{ all map[string]*named }

type named struct {
	Summarizer
	name    string
	breaker *breaker
}

// NewRegistry returns a registry of summarizers by name. The error is an *eventlog.InvalidError that names the
// summarizer.
func NewRegistry(summarizers map[string]Summarizer) (*Registry, error) {
	r := &Registry{map[string]*named{}}
	for _, name := range slices.Sorted(maps.Keys(summarizers)) {
		s := summarizers[name]
		field := fmt.Sprintf("summarizers[%q]", name)
		switch {
		case name == "" || name == Caller:
			return nil, &eventlog.InvalidError{Field: field, Reason: fmt.Sprintf("the name must be neither empty nor %q", Caller)}
		case s.Backend == nil:
			return nil, &eventlog.InvalidError{Field: field, Reason: "has no backend"}
		case s.Timeout < 0:
			return nil, &eventlog.InvalidError{Field: field + ".timeout", Reason: "must not be negative"}
		case s.CoolDown < 0:
			return nil, &eventlog.InvalidError{Field: field + ".cool_down", Reason: "must not be negative"}
		}
		if s.Timeout == 0 {
			s.Timeout = DefaultTimeout
		}
		if s.CoolDown == 0 {
			s.CoolDown = DefaultCoolDown
		}
		if s.MaxInputTokens == 0 {
			s.MaxInputTokens = DefaultMaxInputTokens
		}
		r.all[name] = &named{s, name, newBreaker(name, s.CoolDown)}
	}
	return r, nil
}

// Names returns the names in byte order.
func (r *Registry) Names() []string { return slices.Sorted(maps.Keys(r.all)) }

// Breakers returns the states of all breakers, in the order of the names.
func (r *Registry) Breakers() []BreakerState {
	var all []BreakerState
	for _, name := range r.Names() {
		all = append(all, r.all[name].breaker.state())
	}
	return all
}

// Health returns whether a summarizer is asked; Closed if there is none with the name.
func (r *Registry) Health(name string) Health {
	if n, ok := r.all[name]; ok {
		return n.breaker.state().Health
	}
	return Closed
}

// lookup returns a summarizer, or an *UnknownError.
func (r *Registry) lookup(name string) (*named, error) {
	if n, ok := r.all[name]; ok {
		return n, nil
	}
	return nil, &UnknownError{name}
}
