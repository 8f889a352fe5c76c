// Command footprint measures how long a daemon takes to start, how much memory it uses, and how fast it
// answers while many sessions are in use.
//
//	go run ./bench/footprint -sessions 10000 -events 100 -streams 1000
//
// It builds the program, and stores sessions in a temporary directory, which it removes: 1 GB for a million
// events.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
)

// options are the flags.
type options struct {
	sessions, events, streams, starts int
	duration                          time.Duration
	profile                           string
}

func main() {
	var o options
	flag.IntVar(&o.sessions, "sessions", 10_000, "sessions in the store")
	flag.IntVar(&o.events, "events", 100, "events of each")
	flag.IntVar(&o.streams, "streams", 1_000, "streams of appends that are open at once")
	flag.IntVar(&o.starts, "starts", 5, "how often each start is measured")
	flag.DurationVar(&o.duration, "duration", 30*time.Second, "how long the streams are in use")
	flag.StringVar(&o.profile, "profile", "", "file for a profile of the daemon's processor time while the streams are in use")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "footprint:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	d, err := newDaemon(ctx)
	if err != nil {
		return err
	}
	defer d.remove()
	if err := starts(ctx, d, o.starts, "an empty store"); err != nil {
		return err
	}
	began := time.Now()
	if err := d.running(ctx, nil, func() error { return fill(ctx, d, o.sessions, o.events) }); err != nil {
		return err
	}
	fmt.Printf("%d sessions of %d events appended in %s\n", o.sessions, o.events, time.Since(began).Round(time.Second))
	if err := starts(ctx, d, o.starts, fmt.Sprintf("%d sessions, %d events", o.sessions, o.sessions*o.events)); err != nil {
		return err
	}
	if err := d.running(ctx, []string{"--cache-sessions=2000", fmt.Sprintf("--cache-memory=%d", 1<<30)}, func() error {
		return warm(ctx, d, min(o.sessions, 1000))
	}); err != nil {
		return err
	}
	// Each stream makes at most two calls at a time, but the daemon may end a call later than its client sees
	// the answer.
	many := fmt.Sprint(3 * o.streams)
	flags := []string{"--max-calls=" + many, "--max-client-calls=" + many}
	if o.profile != "" {
		flags = append(flags, "--pprof", "--metrics-listen="+profiles)
	}
	return d.running(ctx, flags, func() error {
		if o.profile == "" {
			return use(ctx, d, o)
		}
		g, ctx := errgroup.WithContext(ctx)
		g.Go(func() error { return use(ctx, d, o) })
		g.Go(func() error { return profile(ctx, o) })
		return g.Wait()
	})
}

// profiles is the address of the daemon's profiles.
const profiles = "127.0.0.1:9465"

// profile takes a CPU profile of the middle half of the time that streams run.
func profile(ctx context.Context, o options) (err error) {
	time.Sleep(o.duration / 4)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%.0f", profiles, o.duration.Seconds()/2), nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("profile: %s", resp.Status)
	}
	file, err := os.Create(o.profile)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, resp.Body)
	return errors.Join(err, file.Close())
}

// settle is how long to wait before the daemon's memory is read.
const settle = 2 * time.Second

// starts measures how long the daemon takes to become ready, and how much memory it uses then.
func starts(ctx context.Context, d *daemon, n int, of string) error {
	var took []time.Duration
	var idle []uint64
	for range n {
		began := time.Now()
		if err := d.running(ctx, nil, func() error {
			took = append(took, time.Since(began))
			time.Sleep(settle)
			kib, err := d.resident()
			idle = append(idle, kib)
			return err
		}); err != nil {
			return err
		}
	}
	slices.Sort(took)
	slices.Sort(idle)
	fmt.Printf("start with %s: ready after %s (median of %d, at most %s); idle %.1f MiB\n",
		of, took[n/2].Round(time.Millisecond), n, took[n-1].Round(time.Millisecond), float64(idle[n/2])/1024)
	return nil
}
