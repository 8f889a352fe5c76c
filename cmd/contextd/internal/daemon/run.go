package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/contextd/contextd/internal/guard"
)

// ErrUnfinished says that the daemon ended while something was still running. Acknowledged appends are safe, but
// the store was not closed.
var ErrUnfinished = errors.New("the daemon ended although not everything had stopped")

// Run serves until ctx ends or serving fails, and then stops in this order: it reports that it is not ready, gives
// calls a limited time to finish, ends the other calls, stops background work, and closes the store. Everything is
// closed when it returns, unless the error is ErrUnfinished.
func (d *Daemon) Run(ctx context.Context) error {
	background, stopBackground := context.WithCancel(context.Background())
	defer stopBackground()
	var work sync.WaitGroup
	failed := make(chan error, 1)
	start := func(task string, run func() error) { work.Go(func() { d.guard(task, failed, run) }) }
	inBackground := func(task string, run func(context.Context)) {
		start(task, func() error {
			run(background)
			return nil
		})
	}
	for _, l := range d.listeners {
		d.logger.InfoContext(ctx, "listening", "address", target(l.Addr()))
		start("listener", func() error { return d.serve(l) })
	}
	if d.inspector != nil {
		d.logger.InfoContext(ctx, "serving the inspector", "address", d.inspector.listener.Addr().String())
		start("inspector", d.inspector.serve)
		start("inspector's calls", func() error { return d.serve(d.inspector.api) })
	}
	inBackground("health", d.watch)
	inBackground("reload", d.reloader.run)
	inBackground("callers", d.auth.Run)

	var metrics <-chan error
	if d.metrics != nil {
		metrics = d.metrics.ended
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	case err = <-metrics:
	}
	bound := time.NewTimer(max(d.stopAfter, leastStop))
	defer bound.Stop()
	d.logger.InfoContext(ctx, "stopping", "within", d.stopAfter, "calls", d.grpc.Calls())
	// stage is what the stop is waiting for, for the log.
	var stage atomic.Value
	stage.Store("calls")
	stopped := make(chan error, 1)
	go func() {
		d.health.Shutdown()
		d.service.Drain()
		var errs []error
		if d.inspector != nil {
			errs = append(errs, d.inspector.close()) // the calls of its pages may have no end
		}
		d.stopServing()
		stage.Store("background work")
		stopBackground()
		d.tenants.stop()
		d.open.Store(false)
		work.Wait()
		stage.Store("the summarizers and the store")
		stopped <- errors.Join(append(errs, d.release())...)
	}()
	select {
	case stopErr := <-stopped:
		d.logger.InfoContext(ctx, "stopped")
		return errors.Join(err, stopErr)
	case <-bound.C:
		d.logger.ErrorContext(ctx, "ended although not everything had stopped", "after", d.stopAfter,
			"waited_for", stage.Load(), "calls", d.grpc.Running())
		return errors.Join(err, ErrUnfinished)
	}
}

// guard runs a task. If it returns an error or panics, the daemon stops for that reason.
func (d *Daemon) guard(task string, failed chan<- error, run func() error) {
	err := guard.Run(d.logger, task, run)
	if err == nil {
		return
	}
	select {
	case failed <- err:
	default: // it stops already
	}
}

func (d *Daemon) serve(l net.Listener) error {
	if err := d.grpc.Serve(l); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return fmt.Errorf("serve %s: %w", target(l.Addr()), err)
	}
	return nil
}

// leastStop is the least time for a stop, even if it is configured as 0, since closing the store takes a moment.
const leastStop = time.Second

// closingTime is how much of a stop's time is kept for the steps after calls were ended; at most a quarter of it.
const closingTime = 5 * time.Second

// stopServing gives calls a limited time to finish, and waits until all have ended.
func (d *Daemon) stopServing() {
	done := make(chan struct{})
	go func() {
		defer close(done)
		d.grpc.GracefulStop()
	}()
	after := d.stopAfter - min(closingTime, d.stopAfter/4)
	bound := time.NewTimer(after)
	defer bound.Stop()
	select {
	case <-done:
	case <-bound.C:
		d.logger.Warn("calls were cut off", "after", after, "calls", d.grpc.Running())
		d.grpc.Stop()
		<-done
	}
}
