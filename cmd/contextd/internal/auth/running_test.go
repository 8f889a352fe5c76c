package auth

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"google.golang.org/grpc/credentials"

	"github.com/contextd/contextd/cmd/contextd/internal/auth/authtest"
)

// TestRunningCallsEnd: a call ends, with the reason, when its caller would no longer be admitted. Others go
// on.
func TestRunningCallsEnd(t *testing.T) {
	mine, other := newIssuer(t), newIssuer(t)
	one, listedOne := token(t, "one", "a")
	two, listedTwo := token(t, "two", "a")
	es := jwt.SigningMethodES256
	short := mine.sign(t, es, mine.key, map[string]any{"exp": time.Now().Add(time.Minute).Unix()})
	long := mine.sign(t, es, mine.key, nil)
	for name, test := range map[string]struct {
		// ended and kept are the tokens of two calls. change is what makes the first one inadmissible.
		ended, kept string
		change      func(t *testing.T, a *Authenticator, tokens, keys string)
		want        string
	}{
		"a token is removed": {one, two, func(t *testing.T, _ *Authenticator, tokens, _ string) { write(t, tokens, listedTwo) }, "is not known"},
		"a token is another tenant's": {one, two, func(t *testing.T, _ *Authenticator, tokens, _ string) {
			write(t, tokens, strings.Replace(listedOne, "tenant: a", "tenant: b", 1)+listedTwo)
		}, "another tenant"},
		"a token expires": {short, long, func(_ *testing.T, a *Authenticator, _, _ string) {
			a.now = func() time.Time { return time.Now().Add(2 * time.Minute) }
		}, "has expired"},
		"a key is removed": {long, one, func(t *testing.T, _ *Authenticator, _, keys string) { write(t, keys, string(other.set)) }, "known key"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			tokens, keys := filepath.Join(folder, "tokens.yaml"), filepath.Join(folder, "jwks.json")
			write(t, tokens, listedOne+listedTwo)
			write(t, keys, string(mine.set))
			var log bytes.Buffer
			a, err := New(Options{TokenFile: tokens, JWT: JWT{Keys: keys, Issuer: "https://i", Audience: "contextd"}}, slog.New(slog.NewTextHandler(&log, nil)))
			if err != nil {
				t.Fatal(err)
			}
			defer a.Close()
			ended, doneEnded := begin(t, a, nil, "Bearer "+test.ended)
			kept, doneKept := begin(t, a, nil, "Bearer "+test.kept)
			a.Reload(t.Context())
			if ended.Err() != nil {
				t.Errorf("before the change: %v", context.Cause(ended))
			}
			test.change(t, a, tokens, keys)
			a.Reload(t.Context())
			if err, ok := errors.AsType[*UnauthenticatedError](context.Cause(ended)); !ok || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the call ended with %v, want %q", context.Cause(ended), test.want)
			}
			if kept.Err() != nil {
				t.Errorf("the other call ended with %v", context.Cause(kept))
			}
			if !strings.Contains(log.String(), "calls=1") || strings.Contains(log.String(), test.ended) {
				t.Errorf("the log has %s", log.String())
			}
			doneEnded()
			doneKept()
			if n := len(a.running.list()); n != 0 {
				t.Errorf("%d calls are still known after their ends", n)
			}
		})
	}
}

// begin authenticates a call.
func begin(t *testing.T, a *Authenticator, info credentials.AuthInfo, authorization ...string) (context.Context, func()) {
	t.Helper()
	ctx, done, err := a.Authenticate(incoming(t, info, authorization...))
	if err != nil {
		t.Fatal(err)
	}
	return ctx, done
}

// TestRunningCallsOfCertificatesEnd: calls end when their client's certificate expires, and when the daemon
// no longer trusts its authority.
func TestRunningCallsOfCertificatesEnd(t *testing.T) {
	for name, test := range map[string]struct {
		change func(t *testing.T, n *network)
		want   string
	}{
		"it expires": {func(_ *testing.T, n *network) {
			n.now = func() time.Time { return time.Now().Add(25 * time.Hour) }
		}, "expired"},
		"its authority is replaced": {func(t *testing.T, n *network) {
			replaced, err := os.ReadFile(authtest.NewAuthority(t, t.TempDir()).File)
			if err != nil {
				t.Fatal(err)
			}
			write(t, n.authority.File, string(replaced))
		}, "authority"},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNetwork(t, nil)
			info, _, err := n.shake(t, n.client(t, "x"))
			if err != nil {
				t.Fatal(err)
			}
			call, done := begin(t, n.Authenticator, info)
			defer done()
			n.Reload(t.Context())
			if call.Err() != nil {
				t.Errorf("before the change: %v", context.Cause(call))
			}
			test.change(t, n)
			n.Reload(t.Context())
			if cause := context.Cause(call); cause == nil || !strings.Contains(cause.Error(), test.want) {
				t.Errorf("the call ended with %v, want %q", cause, test.want)
			}
			if _, err := identify(t, n.Authenticator, info); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the next call of the connection: %v", err)
			}
		})
	}
}

// TestRunningCallsEndInTime: Run checks on its own; docs/security.md says within what time calls end.
func TestRunningCallsEndInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, listed := token(t, "one", "a")
		path := filepath.Join(t.TempDir(), "tokens.yaml")
		write(t, path, listed)
		a, err := New(Options{TokenFile: path}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		ctx, stop := context.WithCancel(t.Context())
		ran := make(chan struct{})
		go func() {
			defer close(ran)
			a.Run(ctx)
		}()
		call, done := begin(t, a, nil, "Bearer "+one)
		defer done()
		write(t, path, "")
		removed := time.Now()
		<-call.Done()
		if took := time.Since(removed); took > 10*time.Second {
			t.Errorf("the call ended after %v", took)
		}
		stop()
		<-ran
	})
}
