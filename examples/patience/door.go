package main

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
)

const (
	// maxTries is how often a client may make one call: once, and three times more.
	maxTries = 4
	// slack is how much too early a timer may fire. Some count in milliseconds.
	slack = 2 * time.Millisecond
)

// waits are the delays for clients, try by try: never the same twice in a row, so that a
// client with a rhythm of its own is found.
var waits = []time.Duration{150 * time.Millisecond, 400 * time.Millisecond, 100 * time.Millisecond}

// guarded are the calls that every turn of an agent makes.
var guarded = []string{
	"/contextd.v1.ContextService/AppendEvents",
	"/contextd.v1.ContextService/AssembleContext",
}

// door refuses the first calls of each guarded method, and watches when they come back.
type door struct {
	refuses int

	mu     sync.Mutex
	tries  map[string]int       // refused so far
	after  map[string]time.Time // when the next may come
	faults []string
}

func newDoor(refuses int) *door {
	return &door{refuses: refuses, tries: map[string]int{}, after: map[string]time.Time{}}
}

// enter is asked before each call. The error is what the client is answered.
func (d *door) enter(method string, now time.Time) error {
	if !slices.Contains(guarded, method) {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	name := path.Base(method)
	if early := d.after[method].Sub(now); early > slack {
		d.faults = append(d.faults, fmt.Sprintf("%s came back %s too early after try %d", name, early, d.tries[method]))
	}
	delete(d.after, method)
	if d.tries[method] >= d.refuses {
		return nil
	}
	wait := waits[d.tries[method]%len(waits)]
	d.tries[method]++
	if d.tries[method] > maxTries {
		d.faults = append(d.faults, fmt.Sprintf("%s was tried %d times, %d are enough", name, d.tries[method], maxTries))
	}
	d.after[method] = now.Add(wait)
	return refusal(wait)
}

// refusal is what a daemon says that is shutting down.
func refusal(wait time.Duration) error {
	st, err := status.New(codes.Unavailable, "the daemon is shutting down").WithDetails(
		&errdetails.ErrorInfo{Reason: "DRAINING", Domain: "contextd"},
		&errdetails.RetryInfo{RetryDelay: durationpb.New(wait)})
	if err != nil {
		return err
	}
	return st.Err()
}

// fault is what clients did that they must not; nil if nothing.
func (d *door) fault() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	faults := d.faults
	if d.tries[guarded[0]] < min(d.refuses, maxTries) {
		faults = append(faults, fmt.Sprintf("%s was tried %d times only", path.Base(guarded[0]), d.tries[guarded[0]]))
	}
	if len(faults) > 0 {
		return fmt.Errorf("%s", strings.Join(faults, "; "))
	}
	return nil
}

// String says how often what was refused.
func (d *door) String() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var parts []string
	for _, method := range guarded {
		parts = append(parts, fmt.Sprintf("%s refused %d times", path.Base(method), d.tries[method]))
	}
	return strings.Join(parts, ", ")
}
