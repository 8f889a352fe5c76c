package cli

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/contextd/contextd/cmd/contextd/internal/config"
)

// systemCA asks for the authorities that the system trusts.
const systemCA = "system"

// proof is what a command proves with who it is, and how it knows the daemon.
type proof struct{ ca, cert, key, tokenFile string }

func (p *proof) bind(f *pflag.FlagSet, lookupEnv func(string) (string, bool)) {
	for _, flag := range []struct {
		value       *string
		name, usage string
	}{
		{&p.ca, "ca", "PEM `file` with the authority of the daemon's certificate, or " + systemCA + "; empty for no TLS"},
		{&p.cert, "cert", "PEM `file` with the own certificate"},
		{&p.key, "key", "PEM `file` with the key of --cert"},
		{&p.tokenFile, "token-file", "`file` with the bearer token of calls"},
	} {
		fromEnv, _ := lookupEnv(config.EnvName(flag.name))
		f.StringVar(flag.value, flag.name, fromEnv, flag.usage+"; also "+config.EnvName(flag.name))
	}
}

// options are those of a connection to an address.
func (p *proof) options(addr string) ([]grpc.DialOption, error) {
	secured, err := p.transport()
	if err != nil {
		return nil, err
	}
	options := []grpc.DialOption{grpc.WithTransportCredentials(secured)}
	if p.tokenFile == "" {
		return options, nil
	}
	token, err := os.ReadFile(p.tokenFile)
	if err != nil {
		return nil, fmt.Errorf("--token-file: %w", err)
	}
	if p.ca == "" && !strings.HasPrefix(addr, "unix:") && config.Reachable(addr) {
		return nil, fmt.Errorf("--token-file: the token could be read on the way to %s: set --ca", addr)
	}
	return append(options, grpc.WithPerRPCCredentials(bearer(strings.TrimSpace(string(token))))), nil
}

func (p *proof) transport() (credentials.TransportCredentials, error) {
	if p.ca == "" {
		if p.cert != "" || p.key != "" {
			return nil, fmt.Errorf("--cert and --key must not be set without --ca: there is no TLS")
		}
		return insecure.NewCredentials(), nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS13}
	if p.ca != systemCA {
		pem, err := os.ReadFile(p.ca)
		if err != nil {
			return nil, fmt.Errorf("--ca: %w", err)
		}
		if c.RootCAs = x509.NewCertPool(); !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("--ca: there is no certificate in %s", p.ca)
		}
	}
	if p.cert != "" || p.key != "" {
		own, err := tls.LoadX509KeyPair(p.cert, p.key)
		if err != nil {
			return nil, fmt.Errorf("--cert and --key: %w", err)
		}
		c.Certificates = []tls.Certificate{own}
	}
	return credentials.NewTLS(c), nil
}

// bearer is a token that every call brings.
type bearer string

// GetRequestMetadata implements credentials.PerRPCCredentials.
func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(b)}, nil
}

// RequireTransportSecurity implements credentials.PerRPCCredentials: proof.options decides.
func (bearer) RequireTransportSecurity() bool { return false }
