package auth

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// noSets are answers that are JSON, or nearly, and no JWK sets.
var noSets = []string{`{}`, `{"error":"try again later"}`, `{"keys":null}`, `{"keys":{}}`, `null`, `[]`, `<html>`, ``}

// TestNoKeysAtURL: an answer that is no JWK set leaves the keys in force, and the log has it.
func TestNoKeysAtURL(t *testing.T) {
	mine := newIssuer(t)
	for _, text := range noSets {
		answers := []string{string(mine.set), text}
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(answers[0]))
			answers = answers[1:]
		}))
		a, log := openByURL(t, server.URL)
		unknown := jwt.New(jwt.SigningMethodES256)
		unknown.Header["kid"] = "two" // has the keys read again
		signed, err := unknown.SignedString(mine.key)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := identify(t, a, nil, "Bearer "+signed); err == nil || len(answers) > 0 {
			t.Fatalf("%v; %d answers are not taken", err, len(answers))
		}
		if _, err := identify(t, a, nil, "Bearer "+mine.sign(t, jwt.SigningMethodES256, mine.key, nil)); err != nil {
			t.Errorf("after %q: %v", text, err)
		}
		if !strings.Contains(log.String(), "JWK set") {
			t.Errorf("after %q the log has %q", text, log.String())
		}
		server.Close()
	}
}

// TestNoKeysInFile: a file that is no JWK set is refused in one line, and leaves what was read before in force.
func TestNoKeysInFile(t *testing.T) {
	mine := newIssuer(t)
	path := filepath.Join(t.TempDir(), "jwks.json")
	for _, text := range noSets {
		o := Options{JWT: JWT{Keys: path, Issuer: "https://i", Audience: "contextd"}}
		write(t, path, text)
		if _, err := New(o, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "is no JWK set: ") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v", text, err)
		}
		write(t, path, string(mine.set))
		var log bytes.Buffer
		a, err := New(o, slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		write(t, path, text)
		a.Reload(t.Context())
		if _, err := identify(t, a, nil, "Bearer "+mine.sign(t, jwt.SigningMethodES256, mine.key, nil)); err != nil {
			t.Errorf("after %q: %v", text, err)
		}
		a.Close()
	}
}

// TestKeysThatCameLate: calls that come before the keys can be read do not delay those that come after, whether their
// tokens name a key or not, and the health says which it is.
func TestKeysThatCameLate(t *testing.T) {
	mine := newIssuer(t)
	nameless := jwt.NewWithClaims(jwt.SigningMethodES256, jwt.MapClaims{"iss": "https://i", "aud": "contextd", "exp": time.Now().Add(time.Hour).Unix()})
	signed, err := nameless.SignedString(mine.key)
	if err != nil {
		t.Fatal(err)
	}
	for name, token := range map[string]string{"named": mine.sign(t, jwt.SigningMethodES256, mine.key, nil), "nameless": signed} {
		t.Run(name, func(t *testing.T) {
			var up atomic.Bool
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if !up.Load() {
					http.Error(w, "down", http.StatusServiceUnavailable)
					return
				}
				_, _ = w.Write(mine.set)
			}))
			defer server.Close()
			a, _ := openByURL(t, server.URL)
			if _, err := identify(t, a, nil, "Bearer "+token); err == nil || a.Healthy() || !a.ReadsFiles() {
				t.Errorf("without keys: %v, healthy %v", err, a.Healthy())
			}
			up.Store(true)
			if _, err := identify(t, a, nil, "Bearer "+token); err != nil || !a.Healthy() {
				t.Errorf("with the keys: %v, healthy %v", err, a.Healthy())
			}
		})
	}
}
