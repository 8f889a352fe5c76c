package main

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

func told(what, from, to, reason string) *contextdv1.LifecycleEvent {
	return &contextdv1.LifecycleEvent{SessionId: "s", Type: what, Attributes: map[string]string{"from_seq": from, "to_seq": to, "reason": reason}}
}

func TestJudgeSpans(t *testing.T) {
	const open = `summarizer "fake" failed several times in a row and is left alone for a while`
	started, ready := told("summary_started", "1", "9", ""), told("summary_ready", "1", "9", "")
	failed, refused := told("summary_failed", "1", "9", "no answer in time"), told("summary_failed", "1", "9", open)
	rejected := told("summary_failed", "1", "9", "summary rejected: it is empty")
	again := []*contextdv1.LifecycleEvent{started, failed, started, failed, started, failed, started}
	for name, c := range map[string]struct {
		events []*contextdv1.LifecycleEvent
		faults []string
		want   summaries
	}{
		"nothing came of it":   {nil, nil, summaries{announced: 2, waived: 2}},
		"ready":                {[]*contextdv1.LifecycleEvent{started, ready}, nil, summaries{announced: 2, waived: 1, started: 1, ready: 1}},
		"ready twice":          {[]*contextdv1.LifecycleEvent{started, ready, started, ready}, []string{"span summarised twice"}, summaries{announced: 2, waived: 1, started: 2, ready: 2}},
		"cut off by a restart": {again, nil, summaries{announced: 2, waived: 1, started: 4, failed: 3}},
		"tried too often":      {append(slices.Clone(again), failed, started), []string{"span tried too often"}, summaries{announced: 2, waived: 1, started: 5, failed: 4}},
		"refused by a breaker": {slices.Repeat([]*contextdv1.LifecycleEvent{started, refused}, 9), nil, summaries{announced: 2, waived: 2, refused: 9}},
		"tried after a rejection": {
			[]*contextdv1.LifecycleEvent{started, rejected, started, ready},
			[]string{"span tried again after a rejected text"},
			summaries{announced: 2, waived: 1, started: 2, failed: 1, ready: 1},
		},
		"of another session": {
			[]*contextdv1.LifecycleEvent{{SessionId: "t", Type: "summary_started", Attributes: started.GetAttributes()}}, nil, summaries{announced: 2, waived: 2},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWatcher()
			for _, e := range c.events {
				w.observe(e)
			}
			var faults []string
			got := w.judge("s", map[uint64]bool{9: true, 12: true}, func(what, _ string) { faults = append(faults, what) })
			if got != c.want || !slices.Equal(faults, c.faults) {
				t.Errorf("%+v %q, want %+v %q", got, faults, c.want, c.faults)
			}
		})
	}
}

func TestAwaitASummary(t *testing.T) {
	for name, c := range map[string]struct {
		event *contextdv1.LifecycleEvent
		ok    bool
	}{
		"ready":         {told("summary_ready", "1", "9", ""), true},
		"further":       {told("summary_ready", "1", "11", ""), true},
		"failed":        {told("summary_failed", "1", "9", "no"), true},
		"only begun":    {told("summary_started", "1", "9", ""), false},
		"not so far":    {told("summary_ready", "1", "8", ""), false},
		"other session": {&contextdv1.LifecycleEvent{SessionId: "t", Type: "summary_ready", Attributes: map[string]string{"from_seq": "1", "to_seq": "9"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWatcher()
				done := make(chan error, 1)
				go func() { done <- w.await(t.Context(), "s", 9) }()
				synctest.Wait()
				w.observe(c.event)
				err := <-done
				if c.ok && err != nil || !c.ok && !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
			})
		})
	}
}

func TestPercentile(t *testing.T) {
	var all []time.Duration
	for i := range 200 {
		all = append(all, time.Duration(200-i))
	}
	for p, want := range map[int]time.Duration{50: 100, 99: 198, 100: 200, 0: 1} {
		if got := percentile(all, p); got != want {
			t.Errorf("p%d of 1 to 200 is %d, want %d", p, got, want)
		}
	}
	if percentile(nil, 99) != 0 {
		t.Error("a percentile of nothing")
	}
}

func TestParseBackends(t *testing.T) {
	for list, ok := range map[string]bool{
		"": true, "extractive,ok,slow,hangs,fails,garbage,echo,down": true,
		"oke": false, "ok,ok": false, "ok,": false,
	} {
		if _, err := parseBackends(list); (err == nil) != ok {
			t.Errorf("%q: %v", list, err)
		}
	}
}
