package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"

	"github.com/contextd/contextd/cmd/contextd/internal/config"
	"github.com/contextd/contextd/cmd/contextd/internal/telemetry"
	"github.com/contextd/contextd/internal/assemble"
	"github.com/contextd/contextd/internal/compaction"
	"github.com/contextd/contextd/internal/lifecycle"
	"github.com/contextd/contextd/internal/summarize"
	"github.com/contextd/contextd/internal/summarize/anthropic"
	"github.com/contextd/contextd/internal/summarize/extractive"
	"github.com/contextd/contextd/internal/summarize/modelhttp"
	"github.com/contextd/contextd/internal/summarize/openai"
	"github.com/contextd/contextd/internal/summarize/pull"
)

// summaries holds the scheduler, and what reports compactions.
type summaries struct {
	hooks     *lifecycle.Hooks
	events    *lifecycle.Bus
	registry  *summarize.Registry
	scheduler *summarize.Scheduler
	compactor *compaction.Compactor
	queue     *pull.Queue // nil if no summarizer is of type pull
	closers   []io.Closer
}

// buildSummaries builds what makes summaries of the engine's sessions.
func (d *Daemon) buildSummaries(o Options, engine *assemble.Engine) (_ *summaries, err error) {
	s := &summaries{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	instance, err := newID()
	if err != nil {
		return nil, err
	}
	hooks := lifecycle.HooksOptions{
		Deadline: o.Config.HookTimeout, OnTimeout: lifecycle.Decision(o.Config.HookOnTimeout), Instance: instance,
	}
	if err := hooks.Validate(); err != nil {
		return nil, err
	}
	s.hooks = lifecycle.NewHooks(hooks)
	observe, err := d.telemetry.NewLifecycleMeter()
	if err != nil {
		return nil, err
	}
	s.events = lifecycle.NewBus(lifecycle.BusOptions{Observe: observe})
	news := compaction.NewNews(s.events, o.Clock)
	if err := s.buildRegistry(o); err != nil {
		return nil, err
	}
	spans, err := d.telemetry.NewSummaries(o.Clock)
	if err != nil {
		return nil, err
	}
	s.scheduler = summarize.NewScheduler(summarize.Options{
		Store: d.store, Sessions: engine, Registry: s.registry, Observer: observer{news, spans},
		Now: o.Clock, Logger: o.Logger,
	})
	s.compactor = compaction.New(compaction.Options{
		Engine: engine, Scheduler: s.scheduler, News: news, Hooks: s.hooks,
		Store: d.store, Clock: o.Clock, NewID: newID, Logger: o.Logger,
		Observe: d.telemetry.NewObserver().Compaction,
	})
	return s, nil
}

// observer notifies watchers and telemetry of summaries.
type observer struct {
	*compaction.News
	spans *telemetry.Summaries
}

func (o observer) SummaryStarted(p summarize.Proposal) {
	o.spans.SummaryStarted(p)
	o.News.SummaryStarted(p)
}

func (o observer) SummaryReady(p summarize.Proposal, s summarize.Summary) {
	o.spans.SummaryReady(p, s)
	o.News.SummaryReady(p, s)
}

func (o observer) SummaryFailed(p summarize.Proposal, reason string) {
	o.spans.SummaryFailed(p, reason)
	o.News.SummaryFailed(p, reason)
}

// buildRegistry opens every summarizer of the configuration.
func (s *summaries) buildRegistry(o Options) error {
	all := o.Config.AllSummarizers()
	scrubber, err := o.Config.Scrubber(nil)
	if err != nil {
		return err
	}
	made := map[string]summarize.Summarizer{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		c := all[name]
		backend, err := s.backend(c, o)
		if err != nil {
			return fmt.Errorf("summarizers[%q]: %w", name, err)
		}
		of := summarize.Summarizer{
			Backend: backend, Timeout: c.TaskTimeout, CoolDown: c.CoolDown, MaxInputTokens: c.MaxInputTokens,
		}
		if c.Scrubs() {
			of.Scrub = scrubber
		}
		made[name] = of
	}
	s.registry, err = summarize.NewRegistry(made)
	return err
}

func (s *summaries) backend(c config.Summarizer, o Options) (summarize.Backend, error) {
	switch c.Type {
	case config.SummarizerOpenAI:
		options, err := modelOptions(c, o.Logger)
		if err != nil {
			return nil, err
		}
		b, err := openai.New(openai.Options{Options: options, MaxTokensField: c.MaxTokensField})
		if err == nil {
			s.closers = append(s.closers, b)
		}
		return b, err
	case config.SummarizerAnthropic:
		options, err := modelOptions(c, o.Logger)
		if err != nil {
			return nil, err
		}
		b, err := anthropic.New(anthropic.Options{Options: options})
		if err == nil {
			s.closers = append(s.closers, b)
		}
		return b, err
	case config.SummarizerPull:
		// One queue serves all: a worker says which sessions it wants, not which name
		// they go by.
		if s.queue == nil {
			s.queue = pull.New(c.Lease)
		}
		return s.queue, nil
	default:
		return extractive.Backend{}, nil
	}
}

func modelOptions(c config.Summarizer, logger *slog.Logger) (modelhttp.Options, error) {
	var key modelhttp.Secret
	var err error
	switch {
	case c.APIKeyEnv != "":
		key, err = modelhttp.FromEnv(c.APIKeyEnv)
	case c.APIKeyFile != "":
		key, err = modelhttp.FromFile(c.APIKeyFile)
	}
	return modelhttp.Options{
		BaseURL: c.BaseURL, Model: c.Model, APIKey: key, Timeout: c.Timeout, MaxAttempts: c.MaxAttempts,
		RequestsPerMinute: c.RequestsPerMinute, Temperature: c.Temperature, OmitTemperature: c.OmitTemperature,
		ReasoningTokens: c.ReasoningTokens, Headers: c.Headers, Logger: logger,
	}, err
}

// resume goes on with what an earlier run of the daemon began.
func (s *summaries) resume(ctx context.Context, logger *slog.Logger) {
	if err := s.scheduler.Resume(ctx); err != nil && ctx.Err() == nil {
		logger.ErrorContext(ctx, "unfinished summaries not resumed", "error", err)
	}
}

// close ends all work and waits for it.
func (s *summaries) close() error {
	if s.compactor != nil {
		s.compactor.Close()
	}
	if s.scheduler != nil {
		s.scheduler.Close()
	}
	var errs []error
	for _, c := range s.closers {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}
