// Package authtest issues certificates for tests.
package authtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Authority signs certificates.
type Authority struct {
	// File has the authority's own certificate, in PEM.
	File string
	// Lifetime is how long the certificates that it issues are valid: a day at first. If it is negative, they have
	// expired already.
	Lifetime time.Duration
	key      *ecdsa.PrivateKey
	cert     *x509.Certificate
}

// NewAuthority makes an authority whose files are in a folder.
func NewAuthority(t testing.TB, folder string) *Authority {
	t.Helper()
	a := &Authority{File: filepath.Join(folder, "ca.pem"), Lifetime: 24 * time.Hour}
	var err error
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	a.Renew(t)
	return a
}

// Renew makes a new certificate for the authority with the same key, as one does before the old one expires. Certificates
// that it issued before are valid by the new one, too.
func (a *Authority) Renew(t testing.TB) {
	t.Helper()
	a.cert = &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "authority of a test"}, NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der := a.sign(t, a.cert, &a.key.PublicKey)
	var err error
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	write(t, a.File, "CERTIFICATE", der)
}

// Issue writes a certificate and its key in PEM. Names are URIs, IP addresses, or DNS names.
func (a *Authority) Issue(t testing.TB, certFile, keyFile string, names ...string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "of a test"}, NotAfter: time.Now().Add(a.Lifetime),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else if u, err := url.Parse(name); err == nil && u.Scheme != "" {
			template.URIs = append(template.URIs, u)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	write(t, certFile, "CERTIFICATE", a.sign(t, template, &key.PublicKey))
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write(t, keyFile, "PRIVATE KEY", der)
}

func (a *Authority) sign(t testing.TB, template *x509.Certificate, key *ecdsa.PublicKey) []byte {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key, a.key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func write(t testing.TB, path, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}
