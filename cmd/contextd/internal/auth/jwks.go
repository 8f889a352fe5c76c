package auth

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/MicahParks/keyfunc/v3"
	"golang.org/x/time/rate"
)

// parseSet parses a file with a JWK set.
func parseSet(contents ...[]byte) (keyfunc.Keyfunc, error) {
	if err := checkKeys(contents[0]); err != nil {
		return nil, err
	}
	keys, err := keyfunc.NewJWKSetJSON(contents[0])
	if err != nil {
		reason, _, _ := strings.Cut(err.Error(), "\n")
		return nil, errors.New("is no JWK set: " + reason)
	}
	return keys, nil
}

// checkKeys returns an error for a text that is not a JWK set, such as the JSON of an error. Otherwise it would replace
// all keys by none.
func checkKeys(text []byte) error {
	var set struct {
		Keys *[]json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(text, &set); err != nil {
		return errors.New("is no JWK set: " + err.Error())
	}
	if set.Keys == nil {
		return errors.New(`is no JWK set: it has no "keys"`)
	}
	return nil
}

// maxKeysBytes bounds the answer with the keys at a URL.
const maxKeysBytes = 1 << 20

// asks limits how often tokens with unknown keys cause a request for the keys of a URL. Until the first answer the limit
// is higher, since nobody is admitted without keys.
type asks struct {
	limit    *rate.Limiter
	answered atomic.Bool
}

const (
	askUnanswered = time.Second
	askAnswered   = 5 * time.Minute
)

func newAsks() *asks { return &asks{limit: rate.NewLimiter(rate.Every(askUnanswered), 1)} }

func (a *asks) answer() {
	if !a.answered.Swap(true) {
		a.limit.SetLimit(rate.Every(askAnswered))
	}
}

// checkedKeys is a transport whose answers are JWK sets of up to maxKeysBytes.
type checkedKeys struct {
	http.RoundTripper
	asks *asks
}

func (c checkedKeys) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := c.RoundTripper.RoundTrip(r)
	if err != nil || resp.StatusCode != http.StatusOK {
		return resp, err
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxKeysBytes+1))
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		return nil, err
	}
	if len(text) > maxKeysBytes {
		return nil, fmt.Errorf("the answer has more than %d bytes", maxKeysBytes)
	}
	if err := checkKeys(text); err != nil {
		return nil, fmt.Errorf("the answer %w", err)
	}
	c.asks.answer()
	resp.Body = io.NopCloser(bytes.NewReader(text))
	return resp, nil
}
