package modelhttp

import (
	"net/http"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// failure returns the error for an answer that reports a failure.
func (c *Client) failure(got reply, h hidden) error {
	f := c.dialect.Failure(got.body)
	e := &StatusError{
		Endpoint:   c.endpoint,
		Status:     got.status,
		Code:       h.code(f.Code),
		Message:    h.message(f.Message),
		RetryAfter: retryAfter(got.header, time.Now()),
		Permanent:  f.Permanent || !passing(got.status),
	}
	for _, name := range []string{"X-Request-Id", "Request-Id"} {
		if id := h.code(got.header.Get(name)); id != "" {
			e.RequestID = id
			break
		}
	}
	// Code, Message and RequestID may each be too short to be recognised as a part of a secret: check them together.
	if h.in(e.Code + e.Message + e.RequestID) {
		e.Code, e.Message, e.RequestID = "", "", ""
	}
	switch {
	case got.status == http.StatusUnauthorized || got.status == http.StatusForbidden:
		// Providers describe the key that they refuse.
		e.Message = ""
	case got.status >= 300 && got.status < 400:
		e.Message = "redirects are not followed"
	}
	if f.Spent {
		return backoff.Permanent(e)
	}
	return e
}

// passing reports whether a failure with this status may be temporary.
func passing(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	}
	return status >= 500
}

// secrets returns the texts that no error may show.
func (c *Client) secrets(key string) []string {
	out := []string{key}
	for _, value := range c.options.Headers {
		out = append(out, value)
	}
	if c.url.User != nil {
		password, _ := c.url.User.Password()
		out = append(out, c.url.User.Username(), password)
	}
	for _, values := range c.url.Query() {
		out = append(out, values...)
	}
	return out
}
