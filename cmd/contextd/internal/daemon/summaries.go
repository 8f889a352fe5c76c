package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/contextd/contextd/cmd/contextd/internal/config"
	"github.com/contextd/contextd/cmd/contextd/internal/telemetry"
	"github.com/contextd/contextd/internal/assemble"
	"github.com/contextd/contextd/internal/compaction"
	"github.com/contextd/contextd/internal/lifecycle"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/summarize"
	"github.com/contextd/contextd/internal/summarize/anthropic"
	"github.com/contextd/contextd/internal/summarize/extractive"
	"github.com/contextd/contextd/internal/summarize/modelhttp"
	"github.com/contextd/contextd/internal/summarize/openai"
	"github.com/contextd/contextd/internal/summarize/pull"
)

// summaries has a tenant's scheduler of summaries, and the parts that report its compactions.
type summaries struct {
	hooks     *lifecycle.Hooks
	registry  *summarize.Registry
	scheduler *summarize.Scheduler
	compactor *compaction.Compactor
	queue     *pull.Queue // nil if no summarizer is of type pull
	logger    *slog.Logger
}

// buildSummaries builds the parts that summarise the engine's sessions.
func (d *Daemon) buildSummaries(o Options, to *telemetry.Telemetry, store eventlog.Store, engine *assemble.Engine, journal *lifecycle.Journal, logger *slog.Logger) (*summaries, error) {
	s := &summaries{logger: logger}
	instance, err := newID()
	if err != nil {
		return nil, err
	}
	observe, err := to.NewHooksMeter()
	if err != nil {
		return nil, err
	}
	hooks := lifecycle.HooksOptions{
		Deadline: o.Config.HookTimeout, OnTimeout: lifecycle.Decision(o.Config.HookOnTimeout), Instance: instance, Observe: observe,
	}
	if err := hooks.Validate(); err != nil {
		return nil, err
	}
	s.hooks = lifecycle.NewHooks(hooks)
	news := compaction.NewNews(journal)
	if s.registry, s.queue, err = d.backends.registry(); err != nil {
		return nil, err
	}
	spans, err := to.NewSummaries(o.Clock)
	if err != nil {
		return nil, err
	}
	s.scheduler = summarize.NewScheduler(summarize.Options{
		Store: store, Sessions: engine, Registry: s.registry, Observer: observer{news, spans}, Journal: journal,
		Now: o.Clock, Logger: logger,
	})
	compactions := to.NewCompactions()
	s.compactor = compaction.New(compaction.Options{
		Engine: engine, Scheduler: s.scheduler, News: news, Journal: journal, Hooks: s.hooks,
		Store: store, Clock: o.Clock, NewID: newID, Logger: logger,
		Observe: compactions.Observe, Forgotten: compactions.Forget,
	})
	return s, nil
}

// observer passes events of summaries on to watchers and telemetry.
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

// backends are the configured summarizers by name. Tenants share them, except those of type pull: a request of one
// tenant must not reach another tenant's worker.
type backends struct {
	of      map[string]summarize.Summarizer // without a backend where it is of type pull
	lease   time.Duration
	closers []io.Closer
}

func openBackends(o Options) (_ backends, err error) {
	all := backends{of: map[string]summarize.Summarizer{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, all.close())
		}
	}()
	scrubber, err := o.Config.Scrubber(nil)
	if err != nil {
		return all, err
	}
	configured := o.Config.AllSummarizers()
	for _, name := range slices.Sorted(maps.Keys(configured)) {
		c := configured[name]
		backend, err := all.open(c, o)
		if err != nil {
			return all, &ConfigurationError{fmt.Errorf("summarizers[%q]: %w", name, err)}
		}
		of := summarize.Summarizer{
			Backend: backend, Timeout: c.TaskTimeout, CoolDown: c.CoolDown, MaxInputTokens: c.MaxInputTokens,
		}
		if c.Scrubs() {
			of.Scrub = scrubber
		}
		all.of[name] = of
	}
	return all, nil
}

func (b *backends) open(c config.Summarizer, o Options) (summarize.Backend, error) {
	switch c.Type {
	case config.SummarizerOpenAI:
		options, err := modelOptions(c, o.Logger)
		if err != nil {
			return nil, err
		}
		made, err := openai.New(openai.Options{Options: options, MaxTokensField: c.MaxTokensField})
		if err == nil {
			b.closers = append(b.closers, made)
		}
		return made, err
	case config.SummarizerAnthropic:
		options, err := modelOptions(c, o.Logger)
		if err != nil {
			return nil, err
		}
		made, err := anthropic.New(anthropic.Options{Options: options})
		if err == nil {
			b.closers = append(b.closers, made)
		}
		return made, err
	case config.SummarizerPull:
		b.lease = cmp.Or(b.lease, c.Lease)
		return nil, nil
	default:
		return extractive.Backend{}, nil
	}
}

// registry returns the summarizers of a tenant, and the queue of those of type pull; nil if there are none.
// All of these share one queue, since a worker chooses sessions and not summarizers.
func (b *backends) registry() (*summarize.Registry, *pull.Queue, error) {
	var queue *pull.Queue
	of := maps.Clone(b.of)
	for name, s := range of {
		if s.Backend != nil {
			continue
		}
		if queue == nil {
			queue = pull.New(b.lease)
		}
		s.Backend = queue
		of[name] = s
	}
	registry, err := summarize.NewRegistry(of)
	return registry, queue, err
}

func (b *backends) names() []string { return slices.Sorted(maps.Keys(b.of)) }

func (b *backends) close() error {
	var errs []error
	for _, c := range b.closers {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
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

// resume continues compactions and summaries that an earlier run of the daemon began.
func (s *summaries) resume(ctx context.Context) {
	if err := s.scheduler.Resume(ctx); err != nil && ctx.Err() == nil {
		s.logger.ErrorContext(ctx, "unfinished summaries not resumed", "error", err)
	}
}

// close stops all work, and returns when it has ended.
func (s *summaries) close() {
	s.compactor.Close()
	s.scheduler.Close()
}
