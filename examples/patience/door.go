package main

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

const (
	// late is by how much a try may begin after the end of the patience: a busy machine is slow.
	late = 2 * time.Second
	// slack is how much too early a timer may fire. Some count in milliseconds.
	slack = 2 * time.Millisecond
)

// waits are the delays for clients, try by try: never the same twice in a row, so that a
// client with a rhythm of its own is found.
var waits = []time.Duration{150 * time.Millisecond, 400 * time.Millisecond, 100 * time.Millisecond}

// assembleContext is the method's name in full.
const assembleContext = contextdv1.ContextService_AssembleContext_FullMethodName

// guarded are the calls that every turn of an agent makes.
var guarded = []string{contextdv1.ContextService_AppendEvents_FullMethodName, assembleContext}

// door refuses the first calls of each guarded method, and watches when they come back.
type door struct {
	refuses int

	mu     sync.Mutex
	tries  map[string]int       // refused so far
	first  map[string]time.Time // when the first came
	after  map[string]time.Time // when the next may come
	faults []string
}

func newDoor(refuses int) *door {
	return &door{refuses: refuses, tries: map[string]int{}, first: map[string]time.Time{}, after: map[string]time.Time{}}
}

// proxy passes on to conn what the door lets in.
func (d *door) proxy(conn *grpc.ClientConn) proxy {
	return proxy{
		daemon: func() *grpc.ClientConn { return conn },
		enter:  func(method string) error { return d.enter(method, time.Now()) },
		leave:  func(string, int) error { return nil },
	}
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
	if d.tries[method]++; d.tries[method] == 1 {
		d.first[method] = now
	}
	if took := now.Sub(d.first[method]); took > short+late {
		d.faults = append(d.faults, fmt.Sprintf("%s was still tried after %s, %s is enough", name, took, short))
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
	if d.tries[guarded[0]] < 2 {
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
