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

// The defaults of options.
const (
	DefaultTimeout     = 60 * time.Second
	DefaultMaxAttempts = 4
)

// Options say which model is asked, and how.
type Options struct {
	// BaseURL is the base address of the API: http or https. Its user and password, if any, are sent as basic
	// authentication, and its query with every request. None of these is ever shown.
	BaseURL string
	// Model is the model's name at the endpoint.
	Model  string
	APIKey Secret
	// Timeout is the time limit of an attempt, from the connection to the last byte of the answer.
	Timeout time.Duration
	// MaxAttempts is how often a request is sent at most; 1 is no retries.
	MaxAttempts int
	// RequestsPerMinute spaces the attempts of all requests of a backend evenly; 0 is no limit.
	RequestsPerMinute float64
	// Temperature is sent with every request, even 0, unless OmitTemperature is set, for models that refuse the
	// parameter.
	Temperature     float64
	OmitTemperature bool
	// ReasoningTokens is the most tokens that a model may write before its text. They are added to the request's
	// limit, because providers count both together.
	ReasoningTokens uint64
	// Headers are sent with every request. Their values are never shown.
	Headers map[string]string
	// HTTPClient sends the requests; nil is a client of the backend's own. Its redirect policy and timeout are not
	// used. Redirects are not followed, because they could send a key to another host.
	HTTPClient *http.Client
	// Logger logs retries; nil logs nothing.
	Logger *slog.Logger
}

// withDefaults returns the options with defaults, or an *eventlog.InvalidError with the field's name in the
// configuration.
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
