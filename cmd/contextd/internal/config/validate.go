package config

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/contextd/contextd/cmd/contextd/internal/wire"
	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/policy"
	"github.com/contextd/contextd/internal/scrub"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// Validate reports the first invalid setting, by its key in the file.
func (c *Config) Validate() error {
	for _, check := range []func() error{
		c.validateChoices, c.validateBounds, c.Disk.validate, c.validatePostgres, c.ValidateListening, c.Limits.Validate,
		c.validateSummarizers, c.validatePolicies,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// validateChoices checks settings with few values, and those that depend on others.
func (c *Config) validateChoices() error {
	switch {
	case c.Listen == "" && c.UnixSocket == "":
		return fmt.Errorf("listen and unix_socket must not both be empty: nobody could reach the daemon")
	case c.Store != StoreMemory && c.Store != StoreDisk && c.Store != StorePostgres:
		return fmt.Errorf("store must be %s, %s or %s, not %q", StoreMemory, StoreDisk, StorePostgres, c.Store)
	case c.Store == StoreDisk && c.DataDir == "":
		return fmt.Errorf("data_dir must be set for the disk store")
	case c.EncryptionKeysDir != "" && !c.Encrypted():
		return fmt.Errorf("encryption_keys_dir has no effect without encryption_key_file or encryption_key_command")
	case c.LogFormat != LogText && c.LogFormat != LogJSON:
		return fmt.Errorf("log_format must be %s or %s, not %q", LogText, LogJSON, c.LogFormat)
	case c.UnixSocketMode&0o600 != 0o600:
		return fmt.Errorf("unix_socket_mode must let the daemon's own user read and write (0600)")
	case c.HookOnTimeout != "allow" && c.HookOnTimeout != "block":
		return fmt.Errorf("hook_on_timeout must be allow or block, not %q", c.HookOnTimeout)
	default:
		return nil
	}
}

// validateBounds checks numbers, sizes and times.
func (c *Config) validateBounds() error {
	switch {
	case c.ShutdownTimeout < 0:
		return fmt.Errorf("shutdown_timeout must not be negative")
	case c.MaxAssemblies > 1<<20 || c.MaxClientAssemblies > 1<<20:
		return fmt.Errorf("max_assemblies and max_client_assemblies must be at most %d", 1<<20)
	case c.MaxCallRate > 1<<31 || c.MaxClientCallRate > 1<<31:
		return fmt.Errorf("max_call_rate and max_client_call_rate must be at most %d", 1<<31)
	case c.HookTimeout <= 0 || c.HookTimeout > time.Minute:
		return fmt.Errorf("hook_timeout must be positive and at most a minute")
	case c.DiskCacheBytes > 1<<40:
		return fmt.Errorf("disk_cache_bytes must be at most 1024GiB")
	}
	for _, bounded := range []struct {
		setting     string
		value, most uint64
	}{
		{"max_connections", c.MaxConnections, 1 << 20},
		{"max_streams", c.MaxStreams, 1 << 31},
		{"max_calls", c.MaxCalls, 1 << 31},
		{"cache_sessions", c.CacheSessions, 1 << 20},
	} {
		if bounded.value == 0 || bounded.value > bounded.most {
			return fmt.Errorf("%s must be between 1 and %d", bounded.setting, bounded.most)
		}
	}
	for _, required := range []struct {
		setting string
		unset   bool
	}{
		{"max_client_connections", c.MaxClientConnections == 0},
		{"max_client_calls", c.MaxClientCalls == 0},
		{"connection_idle_timeout", c.ConnectionIdleTimeout <= 0},
		{"receive_timeout", c.ReceiveTimeout <= 0},
		{"send_timeout", c.SendTimeout <= 0},
		{"request_memory", c.RequestMemory == 0},
		{"answer_memory", c.AnswerMemory == 0},
		{"work_memory", c.WorkMemory == 0},
		{"cache_memory", c.CacheMemory == 0},
	} {
		if required.unset {
			return fmt.Errorf("%s must be greater than 0", required.setting)
		}
	}
	return nil
}

// validatePolicies checks the policies, the models and the budget, and the patterns of credentials.
func (c *Config) validatePolicies() error {
	if _, err := c.Scrubber(nil); err != nil {
		return err
	}
	if _, err := c.PolicySet(); err != nil {
		return err
	}
	models, err := c.Registry()
	if err != nil {
		return err
	}
	if _, err := wire.BudgetToDomain(c.DefaultBudget).Resolve(models); err != nil {
		return fmt.Errorf("default_budget: %w", err)
	}
	return nil
}

// Scrubber finds the credentials that the operator wants replaced. observe is as in scrub.Options.
func (c *Config) Scrubber(observe func(rule string, n int)) (*scrub.Scrubber, error) {
	s, err := scrub.New(scrub.Options{Patterns: c.ScrubPatterns, Observe: observe})
	if err != nil {
		return nil, fmt.Errorf("scrub_patterns: %w", err)
	}
	return s, nil
}

// PolicySet returns the named policies, with the shadow marked.
func (c *Config) PolicySet() (policy.Set, error) {
	set, err := policySet(c.Policies, c.DefaultPolicy, c.summarizerNames())
	if err != nil {
		return set, err
	}
	return set.WithShadow(c.Shadow)
}

func policySet(named map[string]*contextdv1.Policy, fallback string, summarizers policy.Summarizers) (policy.Set, error) {
	overlays := make(map[string]policy.Overlay, len(named))
	for _, name := range slices.Sorted(maps.Keys(named)) {
		var err error
		if overlays[name], err = wire.PolicyToDomain(named[name], fmt.Sprintf("policies[%q]", name)); err != nil {
			return policy.Set{}, err
		}
	}
	return policy.NewSet(overlays, fallback, summarizers)
}

// Registry returns the registry of models.
func (c *Config) Registry() (budget.Models, error) { return budget.NewModels(c.Models...) }

// Budget is the default budget; never nil.
func (c *Config) Budget() *contextdv1.Budget {
	if c.DefaultBudget == nil {
		return &contextdv1.Budget{}
	}
	return c.DefaultBudget
}
