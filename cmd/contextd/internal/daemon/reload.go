package daemon

import (
	"context"
	"log/slog"
	"os"

	"github.com/contextd/contextd/cmd/contextd/internal/config"
	"github.com/contextd/contextd/internal/policy"
)

// reloader applies the settings that may change while the daemon runs: the named policies, and which of them are the
// default and the shadow. All other settings need a restart.
type reloader struct {
	read    func() (config.Config, error)
	signals <-chan os.Signal
	// current is the configuration of the daemon, with the policies that are in use.
	current config.Config
	apply   func(policy.Set)
	// files reads the files again that say who may call.
	files  func(context.Context)
	logger *slog.Logger
}

// run reloads on each signal, until ctx ends.
func (r *reloader) run(ctx context.Context) {
	if r.read == nil {
		return
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.signals:
			r.files(ctx)
			r.reload(ctx)
		}
	}
}

// reload applies the policies as they are configured now. After an error it applies none of them.
func (r *reloader) reload(ctx context.Context) {
	read, err := r.read()
	if err != nil {
		r.logger.ErrorContext(ctx, "the configuration was not reloaded; the policies are as before", "error", err)
		return
	}
	next := r.current
	next.Policies, next.DefaultPolicy, next.Shadow = read.Policies, read.DefaultPolicy, read.Shadow
	policies, err := next.PolicySet()
	if err != nil {
		r.logger.ErrorContext(ctx, "the configuration was not reloaded; the policies are as before", "error", err)
		return
	}
	if others := next.Differences(&read); len(others) > 0 {
		r.logger.WarnContext(ctx, "settings have changed that take effect at the next start only", "settings", others)
	}
	changed := r.current.Differences(&next)
	r.apply(policies)
	r.current = next
	r.logger.InfoContext(ctx, "policies reloaded", "policies", policies.Names(), "default_policy", next.DefaultPolicy, "shadow", next.Shadow, "changed", changed)
}
