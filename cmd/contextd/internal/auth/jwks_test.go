package auth

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
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

// TestManyKeys: a token that names no key is tried with a few keys at most, one that names its key is let in whatever
// the number of keys.
func TestManyKeys(t *testing.T) {
	mine := newIssuer(t)
	nameless := jwt.NewWithClaims(jwt.SigningMethodES256, jwt.MapClaims{"iss": "https://i", "aud": "contextd", "exp": time.Now().Add(time.Hour).Unix()})
	signed, err := nameless.SignedString(mine.key)
	if err != nil {
		t.Fatal(err)
	}
	var set struct {
		Keys []map[string]any `json:"keys"`
	}
	if err := json.Unmarshal(mine.set, &set); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "jwks.json")
	for _, many := range []bool{false, true} {
		for i := len(set.Keys); i < maxTried || many && i == maxTried; i++ {
			key := maps.Clone(set.Keys[0])
			key["kid"] = fmt.Sprint(i)
			set.Keys = append(set.Keys, key)
		}
		text, err := json.Marshal(set)
		if err != nil {
			t.Fatal(err)
		}
		write(t, path, string(text))
		a, err := New(Options{JWT: JWT{Keys: path, Issuer: "https://i", Audience: "contextd"}}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := identify(t, a, nil, "Bearer "+mine.sign(t, jwt.SigningMethodES256, mine.key, nil)); err != nil {
			t.Errorf("of %d keys, by name: %v", len(set.Keys), err)
		}
		_, err = identify(t, a, nil, "Bearer "+signed)
		if refused := err != nil && strings.Contains(err.Error(), "names no key (kid), and there are more than 32"); refused != many || many == (err == nil) {
			t.Errorf("of %d keys, without a name: %v", len(set.Keys), err)
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
