package auth

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/credentials"
)

// keys are a certificate with its key, and the authorities that sign clients' certificates; none if clients
// need no certificate.
type keys struct {
	certificate tls.Certificate
	authorities []*x509.Certificate
}

// pool are the authorities as a crypto/tls configuration takes them; nil if there are none.
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

// trusts reports whether a current authority signed a client's certificate. chains are the chains that the
// handshake verified, perhaps with earlier authorities. If no chain ends in a current authority, it is
// verified again: an authority may have got a new certificate with the same key. came are the certificates
// that the client sent.
func (k keys) trusts(chains [][]*x509.Certificate, came []*x509.Certificate, now time.Time) bool {
	if slices.ContainsFunc(chains, func(chain []*x509.Certificate) bool {
		return slices.ContainsFunc(k.authorities, chain[len(chain)-1].Equal)
	}) {
		return true
	}
	between := x509.NewCertPool()
	for _, c := range came[1:] {
		between.AddCert(c)
	}
	_, err := came[0].Verify(x509.VerifyOptions{
		Roots: k.pool(), Intermediates: between, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	return err == nil
}

// valid returns an error if the certificate has expired or is not valid yet.
func (k keys) valid(now time.Time) error {
	leaf := k.certificate.Leaf
	switch {
	case now.After(leaf.NotAfter):
		return fmt.Errorf("the certificate has expired at %s", leaf.NotAfter.UTC().Format(time.RFC3339))
	case now.Before(leaf.NotBefore):
		return fmt.Errorf("the certificate is not valid before %s", leaf.NotBefore.UTC().Format(time.RFC3339))
	}
	return nil
}

// parseKeys parses a certificate, its key and, if given, the authorities, all in PEM. Errors contain nothing
// of the key.
func parseKeys(contents ...[]byte) (k keys, err error) {
	if _, err := parseCertificates(contents[0]); err != nil {
		return k, err
	}
	if k.certificate, err = tls.X509KeyPair(contents[0], contents[1]); err != nil {
		return k, err
	}
	if len(contents) < 3 {
		return k, nil
	}
	if k.authorities, err = parseCertificates(contents[2]); err != nil {
		return k, fmt.Errorf("authorities: %w", err)
	}
	if len(k.authorities) == 0 {
		return k, errors.New("there is no certificate of an authority in PEM")
	}
	return k, nil
}

// parseCertificates parses the certificates of a PEM file. A truncated certificate, as in a file that is just
// being written, is an error.
func parseCertificates(content []byte) (all []*x509.Certificate, err error) {
	rest := content
	for block, after := pem.Decode(rest); block != nil; block, after = pem.Decode(rest) {
		rest = after
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate %d of them: %w", len(all)+1, err)
		}
		all = append(all, c)
	}
	if bytes.Contains(rest, []byte("-----BEGIN ")) {
		return nil, fmt.Errorf("certificate %d of them has no end", len(all)+1)
	}
	return all, nil
}

// Network returns the credentials for a TCP listener; nil without TLS.
func (a *Authenticator) Network() credentials.TransportCredentials {
	if a.keys == nil {
		return nil
	}
	return credentials.NewTLS(a.tls("h2"))
}

// connectionAge bounds how long a connection keeps the same client certificate.
const connectionAge = 10 * time.Minute

// ConnectionAge is the age at which connections are closed, so that clients connect again; 0 is never.
// Clients with certificates present a renewed certificate then, before the old one expires.
func (a *Authenticator) ConnectionAge() time.Duration {
	if a.options.ClientCAFile == "" {
		return 0
	}
	return connectionAge
}

// tls is the configuration of a listener for one application protocol (ALPN). Each handshake uses the present
// content of the files.
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
				// A resumed session would not be verified against the current authorities.
				SessionTicketsDisabled: true,
			}, nil
		},
	}
}

// byCertificate identifies the client by its verified certificate. It runs at each call, since a connection
// may outlive the certificate, or the daemon's trust in its authority.
func (a *Authenticator) byCertificate(state tls.ConnectionState) (Identity, error) {
	c := state.PeerCertificates[0]
	if a.now().After(c.NotAfter) {
		return Identity{}, &UnauthenticatedError{"the client's certificate has expired since it connected"}
	}
	if !a.keys.get().trusts(state.VerifiedChains, state.PeerCertificates, a.now()) {
		return Identity{}, &UnauthenticatedError{"the authority of the client's certificate was removed since it connected"}
	}
	names := certificateNames(c)
	name := c.Subject.CommonName // for logs alone: an authority need not check it
	if len(names) > 0 {
		name = names[0]
	}
	who := Identity{Name: "certificate of " + name}
	if len(a.options.ClientTenants) == 0 {
		return who, nil
	}
	for _, name := range names {
		if tenant, ok := a.options.ClientTenants.find(name); ok {
			who.Tenant = tenant
			return who, nil
		}
	}
	return Identity{}, &DeniedError{fmt.Sprintf("the client's certificate, of %q, is none of tls_client_tenants", name)}
}

// certificateNames are the URIs (such as SPIFFE ids) and DNS names of a certificate.
func certificateNames(c *x509.Certificate) (names []string) {
	for _, u := range c.URIs {
		names = append(names, u.String())
	}
	return append(names, c.DNSNames...)
}

// ClientTenants maps names in clients' certificates to tenants. A name that ends with "*" is a prefix; the
// longest match counts.
type ClientTenants map[string]string

// Validate refuses empty names and invalid tenants.
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
