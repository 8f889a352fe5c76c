package summarize

import (
	"errors"
	"sync"
	"time"

	"github.com/sony/gobreaker/v2"
)

// Health says whether a summarizer is asked.
type Health string

// A summarizer is asked while its breaker is closed, not asked while it is open, and asked once while it is half
// open.
const (
	Closed   Health = "closed"
	Open     Health = "open"
	HalfOpen Health = "half_open"
)

// BreakerState is the state of one summarizer's breaker.
type BreakerState struct {
	Summarizer string
	Health     Health
	// Failures is how many requests in a row have failed.
	Failures int
}

// tripAfter is how many failures in a row open a breaker.
const tripAfter = 3

// breaker pauses a failing summarizer. Its state is gobreaker's, and the number of failures in a row, which gobreaker
// forgets when it opens.
type breaker struct {
	name    string
	circuit *gobreaker.CircuitBreaker[Output]

	mu       sync.Mutex
	failures int
	// changes are not reported yet: gobreaker announces them while it holds its lock, when no observer may be called.
	changes []BreakerState
	// reporting keeps changes in their order.
	reporting sync.Mutex
}

func newBreaker(name string, coolDown time.Duration) *breaker {
	b := &breaker{name: name}
	b.circuit = gobreaker.NewCircuitBreaker[Output](gobreaker.Settings{
		Name:        name,
		Timeout:     coolDown,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= tripAfter },
		IsExcluded:  isEnded,
		OnStateChange: func(_ string, _, to gobreaker.State) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.changes = append(b.changes, BreakerState{name, health(to), b.failures})
		},
	})
	return b
}

func isEnded(err error) bool {
	var ended *endedError
	return errors.As(err, &ended)
}

// execute calls ask, or returns a *BreakerOpenError without a call.
func (b *breaker) execute(ask func() (Output, error)) (Output, error) {
	out, err := b.circuit.Execute(func() (Output, error) {
		out, err := ask()
		b.mu.Lock()
		defer b.mu.Unlock()
		switch {
		case err == nil:
			b.failures = 0
		case !isEnded(err):
			b.failures++
		}
		return out, err
	})
	if errors.Is(err, gobreaker.ErrOpenState) || errors.Is(err, gobreaker.ErrTooManyRequests) {
		return Output{}, &BreakerOpenError{b.name}
	}
	return out, err
}

func (b *breaker) state() BreakerState {
	s := BreakerState{Summarizer: b.name, Health: health(b.circuit.State())}
	b.mu.Lock()
	defer b.mu.Unlock()
	s.Failures = b.failures
	return s
}

// report calls observe with the changes since the last report.
func (b *breaker) report(observe func(string, BreakerState)) {
	b.reporting.Lock()
	defer b.reporting.Unlock()
	b.mu.Lock()
	changes := b.changes
	b.changes = nil
	b.mu.Unlock()
	for _, c := range changes {
		observe(b.name, c)
	}
}

func health(s gobreaker.State) Health {
	switch s {
	case gobreaker.StateOpen:
		return Open
	case gobreaker.StateHalfOpen:
		return HalfOpen
	default:
		return Closed
	}
}
