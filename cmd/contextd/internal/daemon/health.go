package daemon

import (
	"context"
	"errors"
	"slices"
	"time"

	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/contextd/contextd/cmd/contextd/internal/health"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/summarize"
)

// healthPeriod is how often the health of the parts is checked.
const healthPeriod = time.Second

const (
	serving    = grpc_health_v1.HealthCheckResponse_SERVING
	notServing = grpc_health_v1.HealthCheckResponse_NOT_SERVING
)

// parts are the parts of the daemon that can fail by themselves.
func (d *Daemon) parts() []health.Part {
	parts := []health.Part{{Name: health.Store, Healthy: d.storeTakes}}
	if d.auth.ReadsFiles() {
		parts = append(parts, health.Part{Name: health.Callers, Healthy: d.auth.Healthy})
	}
	// A part that fails for one tenant counts as failed.
	all := func(healthy func(*summaries) bool) func() bool {
		return func() bool {
			return !slices.ContainsFunc(d.tenants.each(), func(t *tenant) bool { return !healthy(t.summaries) })
		}
	}
	for _, name := range d.backends.names() {
		parts = append(parts, health.Part{Name: health.Summarizer(name), Healthy: all(func(s *summaries) bool {
			return s.registry.Health(name) == summarize.Closed
		})})
	}
	return append(parts, health.Part{Name: health.Hooks, Healthy: all(func(s *summaries) bool { return s.hooks.Overdue() == 0 })})
}

// storeTakes reports whether the store accepts new work: it has not failed, and its disk is not full.
func (d *Daemon) storeTakes() bool {
	return d.store.Healthy() == nil && (d.full == nil || !d.full())
}

// watch reports that the daemon is ready once the tokenizer is loaded, as long as the store is healthy. A store that
// failed stays failed; one that only cannot be reached may recover. Summarizers and hooks are reported separately,
// because the daemon works without them.
func (d *Daemon) watch(ctx context.Context) {
	if !d.lazy {
		if err := d.service.Warm(); err != nil {
			d.logger.ErrorContext(ctx, "not ready", "error", err)
			return
		}
	}
	parts := d.parts()
	well := make([]bool, len(parts))
	for i := range well {
		well[i] = true
	}
	tick := time.NewTicker(healthPeriod)
	defer tick.Stop()
	for ready, away := false, false; ; {
		d.reportParts(ctx, parts, well)
		if d.syncs != nil {
			d.syncs.report(ctx)
		}
		err := d.store.Healthy()
		if failed, ok := errors.AsType[*eventlog.UnavailableError](err); ok && failed.Passing {
			if ready || !away {
				d.setServing(notServing)
				d.logger.ErrorContext(ctx, "the store cannot be reached; the daemon takes no work until it can", "error", err)
			}
			ready, away = false, true
		} else if err != nil {
			d.setServing(notServing)
			d.logger.ErrorContext(ctx, "the store has failed; the daemon takes no more work", "error", err)
			return
		} else if !ready {
			d.setServing(serving)
			d.logger.InfoContext(ctx, "ready")
			ready = true
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-d.sick:
		}
	}
}

// reportParts reports the parts whose health changed; well is what was reported before, and is updated.
func (d *Daemon) reportParts(ctx context.Context, parts []health.Part, well []bool) {
	for i, p := range parts {
		healthy := p.Healthy()
		d.health.SetServingStatus(p.Name, statusOf(healthy))
		if healthy != well[i] && p.Name != health.Store {
			d.logger.WarnContext(ctx, "the health of a part has changed", "part", p.Name, "healthy", healthy)
		}
		well[i] = healthy
	}
}

// wake makes watch check the store now.
func (d *Daemon) wake() {
	select {
	case d.sick <- struct{}{}:
	default:
	}
}

func statusOf(healthy bool) grpc_health_v1.HealthCheckResponse_ServingStatus {
	if healthy {
		return serving
	}
	return notServing
}

// setServing sets the status of the daemon and of each of its services.
func (d *Daemon) setServing(status grpc_health_v1.HealthCheckResponse_ServingStatus) {
	d.health.SetServingStatus("", status)
	for name := range d.grpc.GetServiceInfo() {
		d.health.SetServingStatus(name, status)
	}
}
