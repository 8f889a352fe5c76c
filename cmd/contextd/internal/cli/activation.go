package cli

import (
	"fmt"
	"net"
	"os"

	"github.com/coreos/go-systemd/v22/activation"

	"github.com/contextd/contextd/cmd/contextd/internal/config"
)

// activate replaces the listeners of the configuration by the sockets that a service manager (systemd) has
// opened and passed on: at most one TCP socket and one unix socket. It returns none if none was passed on.
func activate(c *config.Config) ([]net.Listener, error) {
	inherited, err := activation.Listeners()
	if err != nil || len(inherited) == 0 {
		return nil, err
	}
	c.Listen, c.UnixSocket = "", ""
	for i, l := range inherited {
		if l == nil {
			return nil, fmt.Errorf("inherited socket %d is none that can be listened on", i+1)
		}
		address := &c.Listen
		if l.Addr().Network() == "unix" {
			address = &c.UnixSocket
			info, err := os.Stat(l.Addr().String())
			if err != nil {
				return nil, fmt.Errorf("inherited socket %d: %w", i+1, err)
			}
			c.UnixSocketMode = info.Mode().Perm()
		}
		if *address != "" {
			return nil, fmt.Errorf("inherited sockets: there must be one of each kind, not %s and %s", *address, l.Addr())
		}
		*address = l.Addr().String()
	}
	return inherited, c.Validate()
}
