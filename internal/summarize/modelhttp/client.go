package modelhttp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/cenkalti/backoff/v5"
	"golang.org/x/time/rate"

	"github.com/contextd/contextd/internal/summarize"
)

// maxAnswerBytes bounds what is read of an answer, reasoning included.
const maxAnswerBytes = 4 << 20

// Client sends requests to one endpoint. It may be used from any goroutine.
type Client struct {
	options  Options
	url      *url.URL
	endpoint string
	dialect  Dialect
	http     *http.Client
	limiter  *rate.Limiter
}

// Dialect says how requests for a provider's API are made, and how it reports failures.
type Dialect struct {
	// Authorize puts the key into the request's headers. It is not called if there is no key.
	Authorize func(http.Header, string)
	// Headers are sent with every request; a header of Options.Headers with the same name replaces one.
	Headers map[string]string
	// Failure parses the body of a failure. The client checks whether its strings may be shown.
	Failure func(body []byte) Failure
}

// Failure is what a provider says of a failed request.
type Failure struct {
	Code, Message string
	// Permanent says that the same request would fail again, whatever the status.
	Permanent bool
	// Spent says that a quota is used up: waiting as the status suggests will not help this request.
	Spent bool
}

// NewClient returns a client; locate makes the endpoint's address from the base URL. It sends nothing. A bad option
// is an *eventlog.InvalidError that names it.
func NewClient(o Options, d Dialect, locate func(*url.URL) *url.URL) (*Client, error) {
	o, base, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	target := locate(base)
	c := &Client{
		options:  o,
		url:      target,
		endpoint: (&url.URL{Scheme: target.Scheme, Host: target.Host, Path: target.Path}).String(),
		dialect:  d,
		limiter:  rate.NewLimiter(rate.Inf, 1),
	}
	if o.RequestsPerMinute > 0 {
		c.limiter.SetLimit(rate.Limit(o.RequestsPerMinute / 60))
	}
	if o.HTTPClient != nil {
		copied := *o.HTTPClient
		c.http = &copied
	} else {
		c.http = &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}
	}
	c.http.Timeout = 0
	c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return c, nil
}

// Options returns the options, completed by their defaults.
func (c *Client) Options() Options { return c.options }

// Close closes idle connections. The client can still be used.
func (c *Client) Close() error {
	c.http.CloseIdleConnections()
	return nil
}

// Summarize sends asked, the API's form of the request r, as JSON, and sets the Output's model.
func (c *Client) Summarize(ctx context.Context, r summarize.Request, asked any, parse func([]byte) (summarize.Output, error)) (summarize.Output, error) {
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(asked); err != nil {
		return summarize.Output{}, err
	}
	return c.send(ctx, bytes.TrimSpace(body.Bytes()), []string{r.System, r.Prompt}, parse)
}

// send posts body until parse accepts an answer, a failure is permanent, or attempts or time are used up. No error
// and no model's name may quote the prompts. It sets the endpoint in an *AnswerError of parse.
func (c *Client) send(ctx context.Context, body []byte, prompts []string, parse func([]byte) (summarize.Output, error)) (summarize.Output, error) {
	p := newPace(ctx)
	attempt := 0
	out, err := backoff.Retry(ctx, func() (summarize.Output, error) {
		attempt++
		p.asked = 0
		answer, h, err := c.attempt(ctx, body, prompts)
		if err == nil {
			var out summarize.Output
			if out, err = parse(answer); err == nil {
				out.Model = c.options.name(out.Model, h)
				return out, nil
			}
			if wrong := (*AnswerError)(nil); errors.As(err, &wrong) {
				wrong.Endpoint = c.endpoint
			}
		}
		if status := (*StatusError)(nil); errors.As(err, &status) {
			p.asked = status.RetryAfter
		}
		if errors.Is(err, summarize.ErrPermanent) {
			err = backoff.Permanent(err)
		}
		return summarize.Output{}, err
	},
		backoff.WithBackOff(p),
		backoff.WithMaxTries(uint(c.options.MaxAttempts)),
		backoff.WithMaxElapsedTime(0),
		backoff.WithNotify(func(err error, wait time.Duration) {
			c.options.Logger.LogAttrs(ctx, slog.LevelInfo, "asking a model again",
				slog.String("model", c.options.Model), slog.Int("attempt", attempt),
				slog.Duration("wait", wait), slog.Any("error", err))
		}))
	if err == nil {
		return out, nil
	}
	if ctx.Err() != nil {
		return summarize.Output{}, fmt.Errorf("%s: %w", c.endpoint, context.Cause(ctx))
	}
	// If all tries are used up, the error is still wrapped in the marker against retrying: unwrap it.
	for marked := (*backoff.PermanentError)(nil); errors.As(err, &marked); {
		err = marked.Err
	}
	return summarize.Output{}, err
}

// attempt waits for the rate limit, posts body once, and returns the body of a successful answer with the texts that
// must not be shown.
func (c *Client) attempt(ctx context.Context, body []byte, prompts []string) ([]byte, hidden, error) {
	if err := c.limiter.Wait(ctx); err != nil {
		return nil, hidden{}, backoff.Permanent(&PacedError{c.options.RequestsPerMinute})
	}
	key, err := c.options.APIKey.Reveal()
	if err != nil {
		return nil, hidden{}, backoff.Permanent(fmt.Errorf("key for %s: %w", c.endpoint, err))
	}
	timeout := &TimeoutError{c.options.Timeout}
	ctx, cancel := context.WithTimeoutCause(ctx, c.options.Timeout, timeout)
	defer cancel()
	h := hidden{c.secrets(key), prompts}
	got, err := c.roundTrip(ctx, body, key)
	switch {
	case err == nil:
	case errors.Is(context.Cause(ctx), timeout):
		return nil, h, &TransportError{c.endpoint, timeout}
	default:
		return nil, h, &TransportError{c.endpoint, h.cause(err)}
	}
	if len(got.body) > maxAnswerBytes {
		return nil, h, &AnswerError{c.endpoint, fmt.Sprintf("the answer is larger than %d bytes", maxAnswerBytes), true}
	}
	if got.status == http.StatusOK {
		return got.body, h, nil
	}
	return nil, h, c.failure(got, h)
}

// reply is an answer. A body longer than maxAnswerBytes is truncated.
type reply struct {
	status int
	header http.Header
	body   []byte
}

func (c *Client) roundTrip(ctx context.Context, body []byte, key string) (reply, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url.String(), bytes.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "contextd")
	for name, value := range c.dialect.Headers {
		req.Header.Set(name, value)
	}
	if key != "" {
		c.dialect.Authorize(req.Header, key)
	}
	for name, value := range c.options.Headers {
		req.Header.Set(name, value)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusSwitchingProtocols {
		// The body is the connection itself, which no context ends.
		return reply{status: resp.StatusCode, header: resp.Header}, nil
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswerBytes+1))
	return reply{resp.StatusCode, resp.Header, raw}, err
}

// Tokens is a token count in an answer. Anything that is no number is read as 0, because the text is useful without
// its statistics.
type Tokens uint64

// UnmarshalJSON takes a number; everything else is 0.
func (t *Tokens) UnmarshalJSON(b []byte) error {
	*t = 0
	if n, err := strconv.ParseFloat(string(b), 64); err == nil && n > 0 && n < math.MaxInt64 {
		*t = Tokens(n)
	}
	return nil
}
