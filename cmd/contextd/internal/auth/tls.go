package auth

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc/credentials"
)

// keys are a certificate with its key, and the authorities that clients' certificates are
// signed by; none if clients need none.
type keys struct {
	certificate tls.Certificate
	authorities []*x509.Certificate
}

// pool are the authorities as handshakes take them; nil if there are none.
func (k keys) pool() *x509.CertPool {
	if k.authorities == nil {
		return nil
	}
	pool := x509.NewCertPool()
	for _, c := range k.authorities {
		pool.AddCert(c)
	}
	return pool
}

// trusts reports whether a chain that a handshake verified ends in an authority of now.
func (k keys) trusts(chain []*x509.Certificate) bool {
	return slices.ContainsFunc(k.authorities, chain[len(chain)-1].Equal)
}

// parseKeys reads a certificate, its key and, if there is a third, the authorities, all in
// PEM. Errors hold nothing of the key.
func parseKeys(contents ...[]byte) (k keys, err error) {
	if k.certificate, err = tls.X509KeyPair(contents[0], contents[1]); err != nil {
		return k, err
	}
	if len(contents) < 3 {
		return k, nil
	}
	for block, rest := pem.Decode(contents[2]); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		authority, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return k, fmt.Errorf("certificate %d of authorities: %w", len(k.authorities)+1, err)
		}
		k.authorities = append(k.authorities, authority)
	}
	if len(k.authorities) == 0 {
		return k, errors.New("there is no certificate of an authority in PEM")
	}
	return k, nil
}

// Network are the credentials of a TCP listener; nil without TLS.
func (a *Authenticator) Network() credentials.TransportCredentials {
	if a.keys == nil {
		return nil
	}
	return credentials.NewTLS(a.tls("h2"))
}

// tls is what a listener speaks, with one protocol inside. Each handshake takes the files as
// they are then.
func (a *Authenticator) tls(protocol string) *tls.Config {
	need := tls.RequireAndVerifyClientCert
	switch {
	case a.options.ClientCAFile == "":
		need = tls.NoClientCert
	case a.options.ByToken():
		need = tls.VerifyClientCertIfGiven
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			k := a.keys.get()
			return &tls.Config{
				MinVersion:   tls.VersionTLS13,
				NextProtos:   []string{protocol},
				Certificates: []tls.Certificate{k.certificate},
				ClientAuth:   need,
				ClientCAs:    k.pool(),
				// A session that is resumed is not held to the authorities of now.
				SessionTicketsDisabled: true,
			}, nil
		},
	}
}

// byCertificate is the client that a certificate was issued to, with the chains that its
// handshake verified. It is asked at each call: a connection may live longer than the
// certificate, and than the daemon's trust in its authority.
func (a *Authenticator) byCertificate(chains [][]*x509.Certificate) (Identity, error) {
	c := chains[0][0]
	if a.now().After(c.NotAfter) {
		return Identity{}, &UnauthenticatedError{"the client's certificate has expired since it connected"}
	}
	if !slices.ContainsFunc(chains, a.keys.get().trusts) {
		return Identity{}, &UnauthenticatedError{"the authority of the client's certificate was removed since it connected"}
	}
	names := certificateNames(c)
	who := Identity{Name: "certificate of " + names[0]}
	if len(a.options.ClientTenants) == 0 {
		return who, nil
	}
	for _, name := range names {
		if tenant, ok := a.options.ClientTenants.find(name); ok {
			who.Tenant = tenant
			return who, nil
		}
	}
	return Identity{}, &DeniedError{fmt.Sprintf("the client's certificate, of %q, is none of tls_client_tenants", names[0])}
}

// certificateNames are the URIs, such as SPIFFE ids, and the DNS names that a certificate is
// for; where it is for none, the common name.
func certificateNames(c *x509.Certificate) (names []string) {
	for _, u := range c.URIs {
		names = append(names, u.String())
	}
	if names = append(names, c.DNSNames...); len(names) == 0 {
		names = []string{c.Subject.CommonName}
	}
	return names
}

// ClientTenants are tenants by the names in clients' certificates. A name that ends with "*"
// is for all that begin so; the longest that fits counts.
type ClientTenants map[string]string

// Validate refuses what names no tenant.
func (t ClientTenants) Validate() error {
	for name, tenant := range t {
		if name == "" {
			return errors.New("a name in certificates must not be empty")
		}
		if err := checkTenant(tenant); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func (t ClientTenants) find(name string) (tenant string, ok bool) {
	if tenant, ok = t[name]; ok {
		return tenant, true
	}
	longest := -1
	for pattern, of := range t {
		if prefix, open := strings.CutSuffix(pattern, "*"); open && strings.HasPrefix(name, prefix) && len(prefix) > longest {
			tenant, ok, longest = of, true, len(prefix)
		}
	}
	return tenant, ok
}
