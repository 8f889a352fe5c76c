package cli

import (
	"github.com/spf13/pflag"

	contextdclient "github.com/contextd/contextd/client"
	"github.com/contextd/contextd/cmd/contextd/internal/config"
)

// bindCredentials adds the flags for TLS and for the credentials of the client.
func bindCredentials(c *contextdclient.Credentials, f *pflag.FlagSet, lookupEnv func(string) (string, bool)) {
	for _, flag := range []struct {
		value       *string
		name, usage string
	}{
		{&c.CA, "ca", "PEM `file` with the authority of the daemon's certificate, or " + contextdclient.SystemCA + "; empty for no TLS"},
		{&c.Certificate, "cert", "PEM `file` with the own certificate"},
		{&c.Key, "key", "PEM `file` with the key of --cert"},
		{&c.TokenFile, "token-file", "`file` with the bearer token of calls"},
	} {
		fromEnv, _ := lookupEnv(config.EnvName(flag.name))
		f.StringVar(flag.value, flag.name, fromEnv, flag.usage+"; also "+config.EnvName(flag.name))
	}
}
