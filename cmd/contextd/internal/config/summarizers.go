package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/contextd/contextd/internal/policy"
	"github.com/contextd/contextd/internal/summarize"
)

// The types of summarizer.
const (
	SummarizerExtractive = "extractive"
	SummarizerOpenAI     = "openai"
	SummarizerAnthropic  = "anthropic"
	SummarizerPull       = "pull"
)

// Summarizer is a summarizer as in YAML; docs/summarizers.md explains the keys. It contains no API key, only
// where to read one.
type Summarizer struct {
	Type string `yaml:"type"`

	BaseURL           string            `yaml:"base_url,omitempty"`
	Model             string            `yaml:"model,omitempty"`
	APIKeyEnv         string            `yaml:"api_key_env,omitempty"`
	APIKeyFile        string            `yaml:"api_key_file,omitempty"`
	Timeout           time.Duration     `yaml:"timeout,omitempty"`
	MaxAttempts       int               `yaml:"max_attempts,omitempty"`
	RequestsPerMinute float64           `yaml:"requests_per_minute,omitempty"`
	Temperature       float64           `yaml:"temperature,omitempty"`
	OmitTemperature   bool              `yaml:"omit_temperature,omitempty"`
	ReasoningTokens   uint64            `yaml:"reasoning_tokens,omitempty"`
	MaxTokensField    string            `yaml:"max_tokens_field,omitempty"`
	Headers           map[string]string `yaml:"headers,omitempty"`

	Lease time.Duration `yaml:"lease,omitempty"`

	Scrub *bool `yaml:"scrub,omitempty"`

	MaxInputTokens uint64        `yaml:"max_input_tokens,omitempty"`
	TaskTimeout    time.Duration `yaml:"task_timeout,omitempty"`
	CoolDown       time.Duration `yaml:"cool_down,omitempty"`
}

// Scrubs reports whether credentials are replaced in the summarizer's input. The default is yes for
// summarizers that send it to a third party.
func (s Summarizer) Scrubs() bool {
	if s.Scrub != nil {
		return *s.Scrub
	}
	return s.Type == SummarizerOpenAI || s.Type == SummarizerAnthropic
}

// builtinSummarizer always exists. The configuration may redefine its name.
const builtinSummarizer = SummarizerExtractive

// AllSummarizers are the built-in summarizer and those of the configuration, by name.
func (c *Config) AllSummarizers() map[string]Summarizer {
	all := map[string]Summarizer{builtinSummarizer: {Type: SummarizerExtractive}}
	maps.Copy(all, c.Summarizers)
	return all
}

func (c *Config) summarizerNames() policy.Summarizers {
	return policy.Summarizers{Names: slices.Sorted(maps.Keys(c.AllSummarizers())), Default: c.DefaultSummarizer}
}

// validateSummarizers reports the first invalid key. Errors of a backend's own are found when it is built.
func (c *Config) validateSummarizers() error {
	all := c.AllSummarizers()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		s := all[name]
		var reason string
		switch {
		case name == "" || name == summarize.Caller:
			reason = fmt.Sprintf("the name must be neither empty nor %q", summarize.Caller)
		case !slices.Contains([]string{SummarizerExtractive, SummarizerOpenAI, SummarizerAnthropic, SummarizerPull}, s.Type):
			reason = fmt.Sprintf("type must be extractive, openai, anthropic or pull, not %q", s.Type)
		case s.APIKeyEnv != "" && s.APIKeyFile != "":
			reason = "api_key_env and api_key_file must not both be set"
		case s.Type == SummarizerExtractive && s.Scrub != nil:
			reason = "scrub has no effect on type extractive: its text goes nowhere else"
		case s.Lease < 0 || s.TaskTimeout < 0 || s.CoolDown < 0:
			reason = "lease, task_timeout and cool_down must not be negative"
		}
		if reason != "" {
			return fmt.Errorf("summarizers[%q]: %s", name, reason)
		}
	}
	if _, ok := all[c.DefaultSummarizer]; !ok {
		return fmt.Errorf("default_summarizer: %q is not a summarizer of the configuration; it knows %s",
			c.DefaultSummarizer, strings.Join(slices.Sorted(maps.Keys(all)), ", "))
	}
	return nil
}

type summarizersValue struct{ summarizers *map[string]Summarizer }

// Set implements pflag.Value.
func (v summarizersValue) Set(text string) error {
	decoder := yaml.NewDecoder(strings.NewReader(text))
	decoder.KnownFields(true)
	var out map[string]Summarizer
	if err := decoder.Decode(&out); err != nil {
		return yamlError(err)
	}
	*v.summarizers = out
	return nil
}

// String implements pflag.Value.
func (v summarizersValue) String() string {
	if v.summarizers == nil || len(*v.summarizers) == 0 {
		return ""
	}
	// Through YAML, so that durations are written as YAML reads them.
	text, err := yaml.Marshal(*v.summarizers)
	if err != nil {
		return ""
	}
	var plain any
	if yaml.Unmarshal(text, &plain) != nil {
		return ""
	}
	compact, err := json.Marshal(plain)
	if err != nil {
		return ""
	}
	return string(compact)
}

// Type implements pflag.Value.
func (summarizersValue) Type() string { return "yaml" }
