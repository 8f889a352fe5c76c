package auth

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/MicahParks/jwkset"
	"github.com/golang-jwt/jwt/v5"
)

// issuer signs JSON Web Tokens.
type issuer struct {
	key *ecdsa.PrivateKey
	set []byte
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	public, err := jwkset.NewJWKFromKey(&key.PublicKey, jwkset.JWKOptions{Metadata: jwkset.JWKMetadataOptions{KID: "one", ALG: "ES256", USE: "sig"}})
	if err != nil {
		t.Fatal(err)
	}
	set, err := json.Marshal(map[string]any{"keys": []any{public.Marshal()}})
	if err != nil {
		t.Fatal(err)
	}
	return &issuer{key, set}
}

func (i *issuer) sign(t *testing.T, method jwt.SigningMethod, key any, change map[string]any) string {
	t.Helper()
	claims := jwt.MapClaims{"iss": "https://i", "aud": "contextd", "sub": "ci", "team": "a", "exp": time.Now().Add(time.Hour).Unix()}
	for name, value := range change {
		if claims[name] = value; value == nil {
			delete(claims, name)
		}
	}
	token := jwt.NewWithClaims(method, claims)
	token.Header["kid"] = "one"
	signed, err := token.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

func TestJWT(t *testing.T) {
	mine, other := newIssuer(t), newIssuer(t)
	path := filepath.Join(t.TempDir(), "jwks.json")
	write(t, path, string(mine.set))
	o := JWT{Keys: path, Issuer: "https://i", Audience: "contextd", TenantClaim: "team"}
	a, err := New(Options{JWT: o}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	es := jwt.SigningMethodES256
	for name, test := range map[string]struct {
		token string
		want  Identity
		err   string
	}{
		"good":              {mine.sign(t, es, mine.key, nil), Identity{Name: "subject ci", Tenant: "a"}, ""},
		"several audiences": {mine.sign(t, es, mine.key, map[string]any{"aud": []string{"x", "contextd"}}), Identity{Name: "subject ci", Tenant: "a"}, ""},
		"expired":           {mine.sign(t, es, mine.key, map[string]any{"exp": time.Now().Add(-time.Hour).Unix()}), Identity{}, "has expired"},
		"for ever":          {mine.sign(t, es, mine.key, map[string]any{"exp": nil}), Identity{}, "is not valid"},
		"not yet":           {mine.sign(t, es, mine.key, map[string]any{"nbf": time.Now().Add(time.Hour).Unix()}), Identity{}, "is not valid yet"},
		"another issuer":    {mine.sign(t, es, mine.key, map[string]any{"iss": "https://j"}), Identity{}, "another issuer"},
		"another audience":  {mine.sign(t, es, mine.key, map[string]any{"aud": "x"}), Identity{}, "another audience"},
		"another key":       {other.sign(t, es, other.key, nil), Identity{}, "known key"},
		"no signature":      {mine.sign(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, nil), Identity{}, "known key"},
		"a shared secret":   {mine.sign(t, jwt.SigningMethodHS256, mine.set, nil), Identity{}, "known key"},
		"no tenant":         {mine.sign(t, es, mine.key, map[string]any{"team": nil}), Identity{}, `no claim "team"`},
		"a tenant's list":   {mine.sign(t, es, mine.key, map[string]any{"team": []string{"a"}}), Identity{}, `no claim "team"`},
		"a wrong tenant":    {mine.sign(t, es, mine.key, map[string]any{"team": "a/b"}), Identity{}, `tenant "a/b"`},
		"no token at all":   {"x", Identity{}, "is not known"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := identify(t, a, nil, "Bearer "+test.token)
			if got != test.want || (err == nil) != (test.err == "") || err != nil && (!strings.Contains(err.Error(), test.err) || strings.Contains(err.Error(), test.token) && test.token != "x") {
				t.Errorf("%+v, %v; want %+v, %q", got, err, test.want, test.err)
			}
		})
	}
	// Changed keys in the file apply after a reload.
	write(t, path, string(other.set))
	a.Reload(t.Context())
	if _, err := identify(t, a, nil, "Bearer "+other.sign(t, es, other.key, nil)); err != nil {
		t.Errorf("with the new key: %v", err)
	}
	if _, err := identify(t, a, nil, "Bearer "+mine.sign(t, es, mine.key, nil)); err == nil {
		t.Error("the old key is in force")
	}
}

// openByURL returns an authenticator with the keys at a URL, which is closed after the test, and its log.
func openByURL(t *testing.T, keys string) (*Authenticator, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	a, err := New(Options{JWT: JWT{Keys: keys, Issuer: "https://i", Audience: "contextd"}}, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	return a, &log
}

// TestJWTByURL: keys may come from a URL that does not answer when the daemon starts.
func TestJWTByURL(t *testing.T) {
	mine := newIssuer(t)
	down := true
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if down {
			http.Error(w, "down", http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write(mine.set)
	}))
	defer server.Close()
	a, log := openByURL(t, server.URL)
	if !strings.Contains(log.String(), "jwt_keys") {
		t.Errorf("the log has %q", log.String())
	}
	down = false
	token := mine.sign(t, jwt.SigningMethodES256, mine.key, nil)
	if who, err := identify(t, a, nil, "Bearer "+token); err != nil || who != (Identity{Name: "subject ci"}) {
		t.Errorf("%+v, %v", who, err)
	}
	// Removing a key at the URL ends the running calls with its tokens.
	ctx, done := begin(t, a, nil, "Bearer "+token)
	defer done()
	if gone, err := a.jwt.remote.Storage().KeyDelete(t.Context(), "one"); !gone || err != nil { // as reading them again does
		t.Fatalf("the key is kept: %v", err)
	}
	a.Reload(t.Context())
	if err, ok := errors.AsType[*UnauthenticatedError](context.Cause(ctx)); !ok || !strings.Contains(err.Error(), "known key") {
		t.Errorf("the call of a removed key ended with %v", context.Cause(ctx))
	}
}

// TestJWTByURLThatIsDown: the log does not show the URL, which may contain a secret.
func TestJWTByURLThatIsDown(t *testing.T) {
	server := httptest.NewServer(nil)
	server.Close()
	var log bytes.Buffer
	a, err := New(Options{JWT: JWT{Keys: server.URL + "/?key=hush", Issuer: "https://i", Audience: "contextd"}}, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if !strings.Contains(log.String(), "refused") || strings.Contains(log.String(), "hush") {
		t.Errorf("the log has %q", log.String())
	}
}

// TestJWTByURLWithoutEnd: endless keys are not read to the end.
func TestJWTByURLWithoutEnd(t *testing.T) {
	var sent atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for chunk := bytes.Repeat([]byte(" "), 1<<16); ; {
			n, err := w.Write(chunk)
			if sent.Add(int64(n)); err != nil {
				return
			}
		}
	}))
	defer server.Close()
	_, log := openByURL(t, server.URL)
	if n := sent.Load(); n > 32<<20 { // some of it is in buffers of the network
		t.Errorf("%d bytes were taken", n)
	}
	if !strings.Contains(log.String(), "1048576 bytes") {
		t.Errorf("the log has %q", log.String())
	}
}
