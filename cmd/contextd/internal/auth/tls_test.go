package auth

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/credentials"

	"github.com/contextd/contextd/cmd/contextd/internal/auth/authtest"
)

// network is an authenticator with TLS, and what issues certificates for it.
type network struct {
	*Authenticator
	authority *authtest.Authority
	folder    string
	log       bytes.Buffer
}

func newNetwork(t *testing.T, change func(*Options)) *network {
	t.Helper()
	folder := t.TempDir()
	n := &network{authority: authtest.NewAuthority(t, folder), folder: folder}
	o := &Options{CertFile: filepath.Join(folder, "cert.pem"), KeyFile: filepath.Join(folder, "key.pem"), ClientCAFile: n.authority.File}
	n.authority.Issue(t, o.CertFile, o.KeyFile, "daemon")
	if change != nil {
		change(o)
	}
	var err error
	if n.Authenticator, err = New(*o, slog.New(slog.NewTextHandler(&n.log, nil))); err != nil {
		t.Fatal(err)
	}
	return n
}

// client is a client's TLS configuration, with a certificate for names if there are any.
func (n *network) client(t *testing.T, names ...string) *tls.Config {
	t.Helper()
	pem, err := os.ReadFile(n.authority.File)
	if err != nil {
		t.Fatal(err)
	}
	c := &tls.Config{ServerName: "daemon", RootCAs: x509.NewCertPool(), NextProtos: []string{"h2"}}
	c.RootCAs.AppendCertsFromPEM(pem)
	if len(names) == 0 {
		return c
	}
	cert, key := filepath.Join(n.folder, "client.pem"), filepath.Join(n.folder, "client.key")
	n.authority.Issue(t, cert, key, names...)
	own, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	c.Certificates = []tls.Certificate{own}
	return c
}

// shake makes a handshake, and returns what both sides know afterwards. Only the server reports whether it
// accepts the client's certificate.
func (n *network) shake(t *testing.T, c *tls.Config) (credentials.AuthInfo, tls.ConnectionState, error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	state := make(chan tls.ConnectionState, 1)
	go func() {
		defer close(state)
		raw, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			return
		}
		defer raw.Close()
		conn := tls.Client(raw, c)
		if conn.Handshake() == nil {
			state <- conn.ConnectionState()
			_, _ = conn.Read(make([]byte, 1)) // returns once the server has checked the certificate
		}
	}()
	raw, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	_, info, err := n.Network().ServerHandshake(raw)
	raw.Close()
	return info, <-state, err
}

func TestCertificates(t *testing.T) {
	tenants := ClientTenants{"spiffe://x/a/*": "a", "spiffe://x/*": "x", "spiffe://x/a/exact": "exact", "host": "h", "none": ""}
	for name, test := range map[string]struct {
		names   []string
		tenants ClientTenants
		want    Identity
		denied  bool
	}{
		"no tenants":       {[]string{"host"}, nil, Identity{Name: "certificate of host"}, false},
		"a DNS name":       {[]string{"host"}, tenants, Identity{Name: "certificate of host", Tenant: "h"}, false},
		"no tenant":        {[]string{"none"}, tenants, Identity{Name: "certificate of none"}, false},
		"a SPIFFE id":      {[]string{"spiffe://x/a/1"}, tenants, Identity{Name: "certificate of spiffe://x/a/1", Tenant: "a"}, false},
		"a shorter prefix": {[]string{"spiffe://x/b"}, tenants, Identity{Name: "certificate of spiffe://x/b", Tenant: "x"}, false},
		"exactly":          {[]string{"spiffe://x/a/exact"}, tenants, Identity{Name: "certificate of spiffe://x/a/exact", Tenant: "exact"}, false},
		"the second name":  {[]string{"other", "host"}, tenants, Identity{Name: "certificate of other", Tenant: "h"}, false},
		"another":          {[]string{"other"}, tenants, Identity{}, true},
		"a common name":    {[]string{"127.0.0.1"}, ClientTenants{"of a test": "a", "*": "x"}, Identity{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNetwork(t, func(o *Options) { o.ClientTenants = test.tenants })
			info, _, err := n.shake(t, n.client(t, test.names...))
			if err != nil {
				t.Fatal(err)
			}
			got, err := identify(t, n.Authenticator, info)
			if _, denied := errors.AsType[*DeniedError](err); denied != test.denied || got != test.want || err != nil && !denied {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

func TestHandshakes(t *testing.T) {
	stranger := newNetwork(t, nil)
	tests := map[string]struct {
		options func(*Options)
		client  func(*testing.T, *network) *tls.Config
		err     string
		// call is the error of a call after the handshake.
		call string
	}{
		"no certificate": {nil, func(t *testing.T, n *network) *tls.Config { return n.client(t) }, "client didn't provide a certificate", ""},
		"of another authority": {nil, func(t *testing.T, n *network) *tls.Config {
			c := n.client(t)
			c.Certificates = stranger.client(t, "x").Certificates
			return c
		}, "unknown authority", ""},
		"TLS 1.2": {nil, func(t *testing.T, n *network) *tls.Config {
			c := n.client(t, "x")
			c.MaxVersion = tls.VersionTLS12
			return c
		}, "unsupported versions", ""},
		"a token instead":          {tokens(t), func(t *testing.T, n *network) *tls.Config { return n.client(t) }, "", "no bearer token"},
		"a certificate or a token": {tokens(t), func(t *testing.T, n *network) *tls.Config { return n.client(t, "x") }, "", ""},
		"no authority":             {func(o *Options) { o.ClientCAFile = "" }, func(t *testing.T, n *network) *tls.Config { return n.client(t) }, "", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			n := newNetwork(t, test.options)
			info, state, err := n.shake(t, test.client(t, n))
			if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Fatalf("%v; want %q", err, test.err)
			}
			if err != nil {
				return
			}
			if state.Version != tls.VersionTLS13 {
				t.Errorf("the version is %x", state.Version)
			}
			if _, err := identify(t, n.Authenticator, info); (err == nil) != (test.call == "") || err != nil && !strings.Contains(err.Error(), test.call) {
				t.Errorf("a call: %v; want %q", err, test.call)
			}
		})
	}
}

func tokens(t *testing.T) func(*Options) {
	path := filepath.Join(t.TempDir(), "tokens.yaml")
	write(t, path, "")
	return func(o *Options) { o.TokenFile = path }
}

// TestCertificateExpires: a connection may outlive the certificate that it began with.
func TestCertificateExpires(t *testing.T) {
	n := newNetwork(t, nil)
	info, _, err := n.shake(t, n.client(t, "x"))
	if err != nil {
		t.Fatal(err)
	}
	n.now = func() time.Time { return time.Now().Add(25 * time.Hour) }
	if _, err := identify(t, n.Authenticator, info); err == nil || !strings.Contains(err.Error(), "expired") {
		t.Errorf("after it expired: %v", err)
	}
}
