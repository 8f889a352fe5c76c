package auth

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/MicahParks/keyfunc/v3"
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

// checkKeys returns an error for what is no JWK set, such as the JSON of an error: it must not replace keys by none.
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

// checkedKeys is a transport whose answers are JWK sets of up to maxKeysBytes.
type checkedKeys struct{ http.RoundTripper }

func (c checkedKeys) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := c.RoundTripper.RoundTrip(r)
	if err != nil || resp.StatusCode != http.StatusOK {
		return resp, err
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxKeysBytes+1))
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		return nil, err
	}
	if len(text) > maxKeysBytes {
		return nil, fmt.Errorf("the answer has more than %d bytes", maxKeysBytes)
	}
	if err := checkKeys(text); err != nil {
		return nil, fmt.Errorf("the answer %w", err)
	}
	resp.Body = io.NopCloser(bytes.NewReader(text))
	return resp, nil
}
