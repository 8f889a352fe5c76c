package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// SystemCA as Credentials.CA trusts the system's certificate authorities.
const SystemCA = "system"

// Credentials prove who calls, and verify the daemon. The zero value is a connection without TLS and
// without proof, for a socket or a daemon on loopback that asks for none. Files are read again for each
// connection, so that a renewed certificate needs no new client.
type Credentials struct {
	// CA is a PEM file with the authority of the daemon's certificate, or SystemCA. Empty: no TLS.
	CA string
	// Certificate and Key are PEM files with the caller's certificate and its key. Both or none.
	Certificate, Key string
	// TokenFile is a file with the bearer token. It is read at every call.
	TokenFile string
}

// credentialsFromEnv returns the credentials that the environment names, as the command line uses them.
func credentialsFromEnv() Credentials {
	return Credentials{
		CA: os.Getenv("CONTEXTD_CA"), Certificate: os.Getenv("CONTEXTD_CERT"), Key: os.Getenv("CONTEXTD_KEY"),
		TokenFile: os.Getenv("CONTEXTD_TOKEN_FILE"),
	}
}

// dialOptions returns the options of a connection to a target.
func (c Credentials) dialOptions(target string) ([]grpc.DialOption, error) {
	if c.CA != "" && strings.HasPrefix(target, "unix:") {
		return nil, fmt.Errorf("a CA must not be set for %s: there is no TLS on a socket", target)
	}
	secured, err := c.transport()
	if err != nil {
		return nil, err
	}
	options := []grpc.DialOption{grpc.WithTransportCredentials(secured)}
	if c.TokenFile == "" {
		return options, nil
	}
	if c.CA == "" && !local(target) {
		return nil, fmt.Errorf("the token could be read on the way to %s: set the CA of its certificate", target)
	}
	token := &bearer{file: c.TokenFile}
	if _, err := token.GetRequestMetadata(context.Background()); err != nil {
		return nil, err
	}
	return append(options, grpc.WithPerRPCCredentials(token)), nil
}

func (c Credentials) transport() (credentials.TransportCredentials, error) {
	if c.CA == "" {
		if c.Certificate != "" || c.Key != "" {
			return nil, errors.New("a certificate and its key must not be set without a CA: there is no TLS")
		}
		return insecure.NewCredentials(), nil
	}
	first, err := c.tls()
	if err != nil {
		return nil, err
	}
	r := &reread{TransportCredentials: first, of: c}
	r.last.Store(&first)
	return r, nil
}

// tls returns TLS credentials from the files as they are now.
func (c Credentials) tls() (credentials.TransportCredentials, error) {
	conf := &tls.Config{MinVersion: tls.VersionTLS13}
	if c.CA != SystemCA {
		pem, err := os.ReadFile(c.CA)
		if err != nil {
			return nil, fmt.Errorf("CA: %w", err)
		}
		if conf.RootCAs = x509.NewCertPool(); !conf.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("CA: there is no certificate in %s", c.CA)
		}
	}
	switch {
	case c.Certificate == "" && c.Key == "":
	case c.Certificate == "" || c.Key == "":
		return nil, errors.New("a certificate and its key must be set together")
	default:
		own, err := tls.LoadX509KeyPair(c.Certificate, c.Key)
		if err != nil {
			return nil, fmt.Errorf("certificate and key: %w", err)
		}
		conf.Certificates = []tls.Certificate{own}
		if c.TokenFile == "" {
			// By itself crypto/tls sends no certificate if the daemon does not accept its authority, and the daemon
			// then cannot say what is wrong with it. With a token the certificate is not needed.
			conf.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &own, nil }
		}
	}
	return credentials.NewTLS(conf), nil
}

// reread reads the files of TLS again for each handshake. If they cannot be used, for instance because only one
// of them has been renewed yet, it uses the last ones that could.
type reread struct {
	credentials.TransportCredentials
	of   Credentials
	last atomic.Pointer[credentials.TransportCredentials]
}

// ClientHandshake implements credentials.TransportCredentials.
func (r *reread) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	if now, err := r.of.tls(); err == nil {
		r.last.Store(&now)
	}
	secured, info, err := (*r.last.Load()).ClientHandshake(ctx, authority, conn)
	if err != nil {
		return nil, nil, err
	}
	return refusable{secured}, info, nil
}

// refusable is a connection whose daemon may refuse the client's certificate. In TLS 1.3 it does so after the client's
// handshake has ended: writing then fails because the connection is closed, and only reading shows why.
type refusable struct{ net.Conn }

// refusalWait bounds the wait for an answer that came before the connection was closed.
const refusalWait = time.Second

// Write implements net.Conn.
func (r refusable) Write(b []byte) (int, error) {
	n, err := r.Conn.Write(b)
	if err == nil {
		return n, nil
	}
	_ = r.SetReadDeadline(time.Now().Add(refusalWait)) // the connection is of no more use
	if _, why := r.Read(make([]byte, 1)); why != nil && strings.Contains(why.Error(), remoteAlert) {
		err = why
	}
	return n, err
}

// remoteAlert is how an error of crypto/tls begins that the other side reported.
const remoteAlert = "remote error: tls: "

// Clone implements credentials.TransportCredentials.
func (r *reread) Clone() credentials.TransportCredentials {
	c := &reread{TransportCredentials: r.TransportCredentials.Clone(), of: r.of}
	c.last.Store(r.last.Load())
	return c
}

// local reports whether a target is on this machine, so that nobody on the network can read what is sent.
func local(target string) bool {
	if strings.HasPrefix(target, "unix:") {
		return true
	}
	host, _, err := net.SplitHostPort(target)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || ip != nil && ip.IsLoopback())
}

// bearer adds the token in a file to every call.
type bearer struct {
	file string
	last atomic.Value // the last token of it
}

// GetRequestMetadata implements credentials.PerRPCCredentials. A file that is being written is
// empty for a moment: then it uses the token that it read before.
func (b *bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	text, err := os.ReadFile(b.file)
	if err != nil {
		return nil, fmt.Errorf("token file: %w", err)
	}
	token := strings.TrimSpace(string(text))
	if strings.ContainsFunc(token, func(r rune) bool { return r < ' ' || r > '~' }) {
		return nil, fmt.Errorf("token file: %s must hold one line of ASCII, the token", b.file)
	}
	if token != "" {
		b.last.Store(token)
	} else if token, _ = b.last.Load().(string); token == "" {
		return nil, fmt.Errorf("token file: %s is empty", b.file)
	}
	return map[string]string{"authorization": "Bearer " + token}, nil
}

// RequireTransportSecurity implements credentials.PerRPCCredentials: dialOptions decides.
func (*bearer) RequireTransportSecurity() bool { return false }
