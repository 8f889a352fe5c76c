package config

import (
	"errors"
	"fmt"
	"net"
)

// ValidateListening refuses to listen where others can call without authentication, unless a setting allows
// that explicitly.
func (c *Config) ValidateListening() error {
	if err := c.Auth.Validate(); err != nil {
		return err
	}
	if err := c.validateAddresses(); err != nil {
		return err
	}
	if c.UnixSocket != "" && c.UnixSocketMode&0o002 != 0 && len(c.Auth.Peers) == 0 && !c.WithoutAuthentication {
		return fmt.Errorf("unix_socket_mode %04o lets every user of this machine call the API: set unix_socket_peers, or insecure_listen_without_authentication if that is meant", c.UnixSocketMode)
	}
	if c.Pprof && (c.MetricsListen == "" || Reachable(c.MetricsListen)) {
		return errors.New("pprof must not be set unless metrics_listen is a loopback address: profiles hold content")
	}
	if err := c.validateInspector(); err != nil {
		return err
	}
	if !Reachable(c.Listen) {
		return nil
	}
	switch {
	case !c.Auth.ByNetwork() && !c.WithoutAuthentication:
		return fmt.Errorf("listen %s can be reached from other machines, where anybody may call the API: set tls_client_ca or auth_tokens, listen on 127.0.0.1 or a unix socket, or set insecure_listen_without_authentication if that is meant", c.Listen)
	case c.Auth.ByNetwork() && !c.Auth.Encrypts() && !c.WithoutEncryption:
		return fmt.Errorf("listen %s can be reached from other machines, and tokens can be read on the way: set tls_cert, or insecure_listen_without_encryption if that is meant", c.Listen)
	}
	return nil
}

// validateAddresses refuses invalid addresses before anything is opened.
func (c *Config) validateAddresses() error {
	for _, of := range []struct{ setting, address string }{
		{"listen", c.Listen}, {"metrics_listen", c.MetricsListen}, {"inspect_listen", c.InspectListen},
	} {
		if of.address == "" {
			continue
		}
		_, port, err := net.SplitHostPort(of.address)
		if err == nil {
			_, err = net.LookupPort("tcp", port)
		}
		if err != nil {
			return fmt.Errorf("%s %q must be host:port, with a port of at most 65535", of.setting, of.address)
		}
	}
	return nil
}

// validateInspector refuses an inspector that anybody could read, and one that nobody could use.
func (c *Config) validateInspector() error {
	switch {
	case c.InspectListen == "":
		return nil
	case c.Auth.ByNetwork() && !c.Auth.ByToken():
		return errors.New("inspect_listen must not be set with tls_client_ca alone: the inspector takes tokens, so set auth_tokens or jwt_keys, too")
	case !Reachable(c.InspectListen):
		return nil
	case !c.Auth.ByToken():
		return fmt.Errorf("inspect_listen %s can be reached from other machines, where anybody may read all sessions: set auth_tokens or jwt_keys, or listen on 127.0.0.1", c.InspectListen)
	case !c.Auth.Encrypts() && !c.WithoutEncryption:
		return fmt.Errorf("inspect_listen %s can be reached from other machines, and tokens can be read on the way: set tls_cert, or insecure_listen_without_encryption if that is meant", c.InspectListen)
	}
	return nil
}

// Reachable reports whether other machines may reach an address. Any host name but localhost counts as
// reachable.
func Reachable(address string) bool {
	if address == "" {
		return false
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	if ip := net.ParseIP(host); ip != nil {
		return !ip.IsLoopback()
	}
	return host != "localhost"
}
