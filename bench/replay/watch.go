package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// patience is how long to wait for an announced summary that needs no model.
const patience = 30 * time.Second

// watcher records what a daemon reports of its summaries. Its methods may be called from any goroutine.
type watcher struct {
	mu sync.Mutex
	// changed is closed, and replaced by a new channel, at each report.
	changed  chan struct{}
	sessions map[string]map[span]*fate
	opened   int // how often a breaker opened
	lost     int
}

// span is the range of events that a summary covers.
type span struct{ from, to uint64 }

// fate counts the attempts to summarise a span.
type fate struct {
	started, ready, failed int
	// refused counts failures of an open breaker, at which no request was made.
	refused int
	// restarted counts attempts that followed the rejection of a summary.
	restarted int
	rejected  bool
}

func newWatcher() *watcher {
	return &watcher{changed: make(chan struct{}), sessions: map[string]map[span]*fate{}}
}

// follow subscribes, and returns once no later event is missed. It ends with the daemon.
func (w *watcher) follow(ctx context.Context, api contextdv1.CompactionServiceClient) error {
	stream, err := api.WatchLifecycle(ctx, &contextdv1.WatchLifecycleRequest{})
	if err != nil {
		return err
	}
	if _, err := stream.Header(); err != nil {
		return err
	}
	go func() {
		for {
			answer, err := stream.Recv()
			if err != nil {
				return
			}
			w.observe(answer.GetEvent())
		}
	}()
	return nil
}

func (w *watcher) observe(e *contextdv1.LifecycleEvent) {
	w.mu.Lock()
	defer w.mu.Unlock()
	a := e.GetAttributes()
	switch e.GetType() {
	case "breaker_open":
		w.opened++
	case "events_lost":
		n, _ := strconv.Atoi(a["count"])
		w.lost += n
	case "summary_started", "summary_ready", "summary_failed":
		w.fate(e.GetSessionId(), a).observe(e.GetType(), a["reason"])
	}
	close(w.changed)
	w.changed = make(chan struct{})
}

func (w *watcher) fate(sessionID string, attributes map[string]string) *fate {
	from, _ := strconv.ParseUint(attributes["from_seq"], 10, 64)
	to, _ := strconv.ParseUint(attributes["to_seq"], 10, 64)
	if w.sessions[sessionID] == nil {
		w.sessions[sessionID] = map[span]*fate{}
	}
	f := w.sessions[sessionID][span{from, to}]
	if f == nil {
		f = &fate{}
		w.sessions[sessionID][span{from, to}] = f
	}
	return f
}

func (f *fate) observe(what, reason string) {
	switch what {
	case "summary_started":
		f.started++
		if f.rejected {
			f.restarted++
		}
	case "summary_ready":
		f.ready++
	case "summary_failed":
		f.failed++
		if strings.Contains(reason, "is left alone for a while") {
			f.refused++
		}
		f.rejected = f.rejected || strings.HasPrefix(reason, "summary rejected:")
	}
}

// await returns once the summary of a span that reaches an event is ready or has failed.
func (w *watcher) await(ctx context.Context, sessionID string, through uint64) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		w.mu.Lock()
		changed := w.changed
		for s, f := range w.sessions[sessionID] {
			if s.to >= through && f.ready+f.failed > 0 {
				w.mu.Unlock()
				return nil
			}
		}
		w.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("nothing was reported of a summary through event %d of %s that was announced: %w", through, sessionID, ctx.Err())
		}
	}
}

// summaries are counts over the spans of one or more sessions.
type summaries struct {
	announced              int // by headers
	waived                 int // announced, but never begun
	started, ready, failed int
	refused                int // by a breaker whose opening was not reported yet
	opened                 int // how often a breaker opened
}

// maxAttempts bounds the attempts at a span whose failures may be temporary. restarts is how many more are
// allowed, since an attempt that a restart interrupted is not reported as failed.
const (
	maxAttempts = 3
	restarts    = 1
)

// judge counts the spans of a session. announced are the last events of spans that headers announced. It
// calls fault for each span that was summarised twice or tried too often.
func (w *watcher) judge(sessionID string, announced map[uint64]bool, fault func(what, example string)) summaries {
	w.mu.Lock()
	spans := map[span]fate{}
	for s, f := range w.sessions[sessionID] {
		spans[s] = *f
	}
	w.mu.Unlock()
	n := summaries{announced: len(announced), waived: len(announced)}
	begun := map[uint64]bool{}
	for s, f := range spans {
		if announced[s.to] && f.started > f.refused && !begun[s.to] {
			begun[s.to] = true
			n.waived--
		}
		n.started += f.started - f.refused
		n.ready += f.ready
		n.failed += f.failed - f.refused
		n.refused += f.refused
		where := fmt.Sprintf("%s, events %d to %d: %+v", sessionID, s.from, s.to, f)
		switch {
		case f.ready > 1:
			fault("span summarised twice", where)
		case f.started-f.refused > maxAttempts+restarts:
			fault("span tried too often", where)
		case f.restarted > 0:
			fault("span tried again after a rejected text", where)
		}
	}
	return n
}

// take returns how often a breaker opened, and how many events were not delivered, since the last call.
func (w *watcher) take() (opened, lost int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	opened, lost = w.opened, w.lost
	w.opened, w.lost = 0, 0
	return opened, lost
}

func (n *summaries) add(m summaries) {
	n.announced += m.announced
	n.waived += m.waived
	n.started += m.started
	n.ready += m.ready
	n.failed += m.failed
	n.refused += m.refused
}
