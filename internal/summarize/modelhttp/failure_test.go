package modelhttp

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/contextd/contextd/internal/summarize"
)

// What a provider says of a failure is reported, unless it describes the key: masked where
// it is refused, or in parts that are too short each.
func TestWhatIsSaidOfAFailure(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		said   Failure
		want   string
	}{
		"reported":    {404, Failure{Code: "not_found", Message: "no such model"}, "http://host answered 404 not_found: no such model (request r-1)"},
		"refused key": {401, Failure{Code: "invalid_key", Message: "wrong key: sk-a...kl"}, "http://host answered 401 invalid_key (request r-1)"},
		"forbidden":   {403, Failure{Message: "wrong key: sk-a...kl"}, "http://host answered 403 (request r-1)"},
		"in parts":    {400, Failure{Code: "abcd", Message: "efgh"}, "http://host answered 400"},
	} {
		client := Client{endpoint: "http://host", dialect: Dialect{Failure: func([]byte) Failure { return c.said }}}
		got := client.failure(reply{status: c.status, header: http.Header{"X-Request-Id": {"r-1"}}}, hidden{secrets: []string{"sk-abcdefghijkl"}})
		if got.Error() != c.want || !errors.Is(got, summarize.ErrPermanent) {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// An account without money is not asked again within a request, and may have some
// for the next.
func TestSpent(t *testing.T) {
	asked := 0
	d := plain
	d.Failure = func([]byte) Failure { return Failure{Code: "insufficient_quota", Spent: true} }
	c, err := NewClient(Options{BaseURL: "http://host", Model: "m", HTTPClient: &http.Client{
		Transport: roundTrip(func(*http.Request) (*http.Response, error) {
			asked++
			return answered(429, nil), nil
		}),
	}}, d, same)
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.send(t.Context(), nil, nil, nil)
	status := (*StatusError)(nil)
	if !errors.As(err, &status) || errors.Is(err, summarize.ErrPermanent) || asked != 1 {
		t.Errorf("asked %d times: %v", asked, err)
	}
}

// A wait that one answer asked for does not hold for the next.
func TestRetryAfterIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Time
		c, err := NewClient(Options{BaseURL: "http://host", Model: "m", MaxAttempts: 3, HTTPClient: &http.Client{
			Transport: roundTrip(func(*http.Request) (*http.Response, error) {
				at = append(at, time.Now())
				if len(at) == 1 {
					return answered(429, http.Header{"Retry-After": {"60"}}), nil
				}
				return nil, io.ErrUnexpectedEOF
			}),
		}}, plain, same)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.send(t.Context(), nil, nil, nil); err == nil || len(at) != 3 {
			t.Fatalf("asked at %v: %v", at, err)
		}
		if first, second := at[1].Sub(at[0]), at[2].Sub(at[1]); first != time.Minute || second > 5*time.Second {
			t.Errorf("waited %v, then %v", first, second)
		}
	})
}

func answered(status int, h http.Header) *http.Response {
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(""))}
}
