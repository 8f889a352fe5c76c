package modelhttp

import (
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	eventlog "github.com/contextd/contextd/internal/log"
)

// What applies where an option is zero.
const (
	DefaultTimeout     = 60 * time.Second
	DefaultMaxAttempts = 4
)

// Options say which model is asked, and how.
type Options struct {
	// BaseURL is where the API begins: http or https. Its user and password, if any,
	// are sent as basic authentication, its query with every request; neither is
	// ever shown.
	BaseURL string
	// Model is its name at the endpoint.
	Model  string
	APIKey Secret
	// Timeout bounds an attempt, from the connection to the last byte of the answer.
	Timeout time.Duration
	// MaxAttempts is how often a request is sent at most; 1 for no retries.
	MaxAttempts int
	// RequestsPerMinute spaces attempts evenly, over all requests of a backend; 0 for
	// no limit.
	RequestsPerMinute float64
	// Temperature is sent with every request, 0 too, unless OmitTemperature, which
	// is for models that refuse the parameter.
	Temperature     float64
	OmitTemperature bool
	// ReasoningTokens is what a model may write before its text, on top of the
	// request's limit, where the provider counts both together.
	ReasoningTokens uint64
	// Headers are sent with every request. Their values are never shown.
	Headers map[string]string
	// HTTPClient carries the requests; nil for one of the backend's own. Its redirect
	// policy and its timeout do not apply: redirects are not followed, for they could
	// carry a key to another host.
	HTTPClient *http.Client
	// Logger is notified of retries; nil for none.
	Logger *slog.Logger
}

// withDefaults returns the options completed, or an *eventlog.InvalidError that
// names the field as the configuration does.
func (o Options) withDefaults() (Options, *url.URL, error) {
	invalid := func(field, format string, args ...any) (Options, *url.URL, error) {
		return Options{}, nil, &eventlog.InvalidError{Field: field, Reason: fmt.Sprintf(format, args...)}
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	if o.MaxAttempts == 0 {
		o.MaxAttempts = DefaultMaxAttempts
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Headers = maps.Clone(o.Headers)
	base, err := url.Parse(o.BaseURL)
	// The parser's error quotes its input, which may hold a password.
	switch {
	case err != nil:
		return invalid("base_url", "is not a URL")
	case base.Scheme != "http" && base.Scheme != "https":
		return invalid("base_url", "must begin with http:// or https://")
	case base.Hostname() == "":
		return invalid("base_url", "names no host")
	case base.User != nil && o.APIKey.IsSet():
		return invalid("base_url", "must not hold a user in addition to a key: both go into the same header")
	case strings.TrimSpace(o.Model) == "":
		return invalid("model", "is empty")
	case o.Timeout < 0:
		return invalid("timeout", "is negative")
	case o.MaxAttempts < 0:
		return invalid("max_attempts", "is negative")
	case !(o.RequestsPerMinute >= 0 && o.RequestsPerMinute <= 1e6):
		return invalid("requests_per_minute", "must be from 0 to a million")
	case !(o.Temperature >= 0 && o.Temperature <= 2):
		return invalid("temperature", "must be from 0 to 2")
	case o.ReasoningTokens > 1<<20:
		return invalid("reasoning_tokens", "is more than %d", 1<<20)
	}
	for _, name := range slices.Sorted(maps.Keys(o.Headers)) {
		if !httpguts.ValidHeaderFieldName(name) {
			return invalid("headers", "%q is no name of a header", name)
		}
		if !httpguts.ValidHeaderFieldValue(o.Headers[name]) {
			return invalid("headers."+name, "holds characters that a header cannot")
		}
	}
	if _, err := o.APIKey.Reveal(); err != nil {
		return invalid("api_key", "%v", err)
	}
	return o, base, nil
}

// name returns the model's name from an answer, bounded in length; the configured name if the answer has none that
// may be shown.
func (o Options) name(answered string, h hidden) string {
	if s := h.message(answered); s != "" {
		return s
	}
	return o.Model
}
