package auth

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/contextd/contextd/cmd/contextd/internal/auth/authtest"
)

// TestReload: a changed file is read again. An invalid file is reported once per error, and changes nothing.
func TestReload(t *testing.T) {
	one, listedOne := token(t, "one", "")
	two, listedTwo := token(t, "two", "")
	path := filepath.Join(t.TempDir(), "tokens.yaml")
	write(t, path, listedOne)
	var log bytes.Buffer
	a, err := New(Options{TokenFile: path}, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	admitted := func(token string) bool {
		_, err := identify(t, a, nil, "Bearer "+token)
		return err == nil
	}
	for i, step := range []struct {
		content        string
		one, two, well bool
		logged         string
	}{
		{listedOne, true, false, true, ""},
		{two, true, false, false, "level=ERROR"},
		{two, true, false, false, ""},
		{"- {name: x}", true, false, false, "sha256 of x"},
		{listedOne, true, false, true, "level=INFO"},
		{listedTwo, false, true, true, "level=INFO"},
		{"\n", false, false, true, "level=INFO"},
		{listedOne, true, false, true, "level=INFO"},
		{"[]", false, false, true, "level=INFO"},
	} {
		write(t, path, step.content)
		log.Reset()
		a.Reload(t.Context())
		if admitted(one) != step.one || admitted(two) != step.two || a.Healthy() != step.well {
			t.Errorf("step %d, %q: one is admitted %t, two %t, it is well %t", i, step.content, admitted(one), admitted(two), a.Healthy())
		}
		if got := log.String(); !strings.Contains(got, step.logged) || step.logged == "" && got != "" || strings.Contains(got, two) {
			t.Errorf("step %d, %q: the log has %q", i, step.content, got)
		}
	}
	if _, err := New(Options{TokenFile: path + "x"}, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "auth_tokens") {
		t.Errorf("a missing file: %v", err)
	}
}

// TestFilesThatAreBeingWritten: between two checks a file may be found empty, or cut where an entry has no tenant yet.
// It counts once a second check finds the same, and an error in it is reported only then.
func TestFilesThatAreBeingWritten(t *testing.T) {
	one, listedOne := token(t, "one", "a")
	two, listedTwo := token(t, "two", "a")
	path := filepath.Join(t.TempDir(), "tokens.yaml")
	write(t, path, listedOne)
	var log bytes.Buffer
	a, err := New(Options{TokenFile: path}, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	cut, _, _ := strings.Cut(listedTwo, "  tenant")
	for i, step := range []struct {
		content string
		// one and two are the tenants of the tokens, "-" of one that is refused.
		one, two, logged string
	}{
		{listedOne, "a", "-", ""},
		{"", "a", "-", ""},
		{cut, "a", "-", ""},
		{cut[:len(cut)/2], "a", "-", ""},
		{listedTwo, "a", "-", ""},
		{listedTwo, "-", "a", "level=INFO"},
		{listedTwo[:len(listedTwo)/2], "-", "a", ""},
		{listedTwo[:len(listedTwo)/2], "-", "a", "level=ERROR"},
		{listedTwo, "-", "a", "level=INFO"},
		{cut, "-", "a", ""},
		{cut, "-", "", "level=INFO"},
		{"", "-", "", ""},
		{"", "-", "-", "level=INFO"},
	} {
		write(t, path, step.content)
		log.Reset()
		a.check(t.Context(), false)
		for token, want := range map[string]string{one: step.one, two: step.two} {
			if who, err := identify(t, a, nil, "Bearer "+token); (err != nil) != (want == "-") || err == nil && who.Tenant != want {
				t.Errorf("step %d, %q: %+v, %v, want tenant %q", i, step.content, who, err, want)
			}
		}
		if got := log.String(); !strings.Contains(got, step.logged) || step.logged == "" && got != "" {
			t.Errorf("step %d, %q: the log has %q", i, step.content, got)
		}
	}
}

// TestWrongCertificatesAreNotTakenOver: an invalid pair is reported, and the last valid one stays in force.
func TestWrongCertificatesAreNotTakenOver(t *testing.T) {
	half := func(text string) string { return text[:len(text)/2] }
	for name, test := range map[string]struct {
		// change makes the files invalid.
		change func(*testing.T, *network, *Options)
		want   string
	}{
		"half of the certificate": {func(t *testing.T, n *network, o *Options) { rewrite(t, o.CertFile, half) }, "tls_cert"},
		"half of the key":         {func(t *testing.T, n *network, o *Options) { rewrite(t, o.KeyFile, half) }, "tls_cert"},
		"a key that does not fit": {func(t *testing.T, n *network, o *Options) {
			n.authority.Issue(t, filepath.Join(n.folder, "other.pem"), o.KeyFile, "daemon")
		}, "private key does not match"},
		"no key": {func(t *testing.T, n *network, o *Options) {
			if err := os.Remove(o.KeyFile); err != nil {
				t.Fatal(err)
			}
		}, "key.pem"},
		"an expired certificate": {func(t *testing.T, n *network, o *Options) {
			n.authority.Lifetime = -time.Minute
			n.authority.Issue(t, o.CertFile, o.KeyFile, "daemon")
		}, "expired"},
		"a chain that is cut": {func(t *testing.T, n *network, o *Options) {
			rewrite(t, o.CertFile, func(text string) string { return text + half(text) })
		}, "certificate 2 of"},
		"authorities that are cut": {func(t *testing.T, n *network, o *Options) {
			rewrite(t, o.ClientCAFile, func(text string) string { return text + half(text) })
		}, "certificate 2 of"},
	} {
		t.Run(name, func(t *testing.T) {
			var o *Options
			n := newNetwork(t, func(used *Options) { o = used })
			client := n.client(t, "x")
			_, before, err := n.shake(t, client)
			if err != nil {
				t.Fatal(err)
			}
			test.change(t, n, o)
			n.Reload(t.Context())
			if got := n.log.String(); !strings.Contains(got, test.want) || !strings.Contains(got, "level=ERROR") || n.Healthy() {
				t.Errorf("the log has %q, and it is well %t", got, n.Healthy())
			}
			_, after, err := n.shake(t, client)
			if err != nil || after.PeerCertificates[0].SerialNumber.Cmp(before.PeerCertificates[0].SerialNumber) != 0 {
				t.Errorf("the pair before is not in use: %v", err)
			}
			n.authority.Lifetime = 24 * time.Hour
			n.authority.Issue(t, o.CertFile, o.KeyFile, "daemon")
			n.authority.Renew(t)
			n.Reload(t.Context())
			if !n.Healthy() {
				t.Errorf("with a pair that fits: %s", n.log.String())
			}
		})
	}
}

// TestExpiredCertificate: a daemon starts with an expired certificate, since a new one may follow, and
// reports it.
func TestExpiredCertificate(t *testing.T) {
	n := newNetwork(t, nil)
	if !n.Healthy() {
		t.Error("it is not well at first")
	}
	if lifetime, remaining, has := n.Certificate(); !has || remaining <= 0 || remaining > lifetime {
		t.Errorf("the certificate is valid for %s of %s", remaining, lifetime)
	}
	n.now = func() time.Time { return time.Now().Add(25 * time.Hour) }
	if n.Healthy() {
		t.Error("it is well although its certificate has expired")
	}
	if _, remaining, _ := n.Certificate(); remaining > 0 {
		t.Errorf("the certificate is valid for %s more", remaining)
	}
	for range 2 {
		n.Reload(t.Context())
	}
	if got := n.log.String(); strings.Count(got, "nobody will connect over TLS") != 1 || !strings.Contains(got, "the certificate has expired at") {
		t.Errorf("the log has %q", got)
	}
}

func rewrite(t *testing.T, path string, change func(string) string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, change(string(text)))
}

// TestAuthorityIsRenewed: a connection stays admitted when its authority gets another certificate for the
// same key.
func TestAuthorityIsRenewed(t *testing.T) {
	n := newNetwork(t, nil)
	info, _, err := n.shake(t, n.client(t, "x"))
	if err != nil {
		t.Fatal(err)
	}
	n.authority.Renew(t)
	n.Reload(t.Context())
	if _, err := identify(t, n.Authenticator, info); err != nil {
		t.Errorf("after it was renewed: %v", err)
	}
	replaced, err := os.ReadFile(authtest.NewAuthority(t, t.TempDir()).File)
	if err != nil {
		t.Fatal(err)
	}
	write(t, n.authority.File, string(replaced))
	n.Reload(t.Context())
	if _, err := identify(t, n.Authenticator, info); err == nil || !strings.Contains(err.Error(), "was removed") {
		t.Errorf("after it was removed: %v", err)
	}
}

// TestCertificateIsReloaded: new connections use the present certificate and authorities without a restart.
// When the files do not fit together, nothing of a key is logged.
func TestCertificateIsReloaded(t *testing.T) {
	n := newNetwork(t, nil)
	_, before, err := n.shake(t, n.client(t, "x"))
	if err != nil {
		t.Fatal(err)
	}
	cert, key := filepath.Join(n.folder, "cert.pem"), filepath.Join(n.folder, "key.pem")
	old, err := os.ReadFile(cert)
	if err != nil {
		t.Fatal(err)
	}
	n.authority.Issue(t, cert, key, "daemon")
	fresh, err := os.ReadFile(cert)
	if err != nil {
		t.Fatal(err)
	}
	write(t, cert, string(old)) // the key is already the new one
	n.Reload(t.Context())
	_, between, err := n.shake(t, n.client(t, "x"))
	if err != nil || between.PeerCertificates[0].SerialNumber.Cmp(before.PeerCertificates[0].SerialNumber) != 0 {
		t.Errorf("with a key that does not fit: %v", err)
	}
	secret, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	if got := n.log.String(); !strings.Contains(got, "tls_cert") || strings.Contains(got, strings.Split(string(secret), "\n")[1]) {
		t.Errorf("the log has %s", got)
	}
	write(t, cert, string(fresh))
	n.Reload(t.Context())
	_, after, err := n.shake(t, n.client(t, "x"))
	if err != nil || after.PeerCertificates[0].SerialNumber.Cmp(before.PeerCertificates[0].SerialNumber) == 0 {
		t.Errorf("after it was replaced: %v", err)
	}
	other := authtest.NewAuthority(t, t.TempDir())
	replaced, err := os.ReadFile(other.File)
	if err != nil {
		t.Fatal(err)
	}
	mine := n.client(t, "x")
	write(t, n.authority.File, string(replaced))
	n.Reload(t.Context())
	if _, _, err := n.shake(t, mine); err == nil {
		t.Error("an authority that was removed is trusted")
	}
}
