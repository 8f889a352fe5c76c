package auth

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"

	"google.golang.org/grpc/credentials"
)

// Peer is a process that may use a unix socket, as the kernel identifies it.
type Peer struct {
	// UID and GID are its effective user and group. One may be nil, which matches any.
	UID    *uint32 `yaml:"uid" json:"uid,omitempty"`
	GID    *uint32 `yaml:"gid" json:"gid,omitempty"`
	Tenant string  `yaml:"tenant" json:"tenant,omitempty"`
}

// Validate refuses a Peer that would match every process.
func (p Peer) Validate() error {
	if p.UID == nil && p.GID == nil {
		return errors.New("must have a uid, a gid or both")
	}
	return checkTenant(p.Tenant)
}

func (p Peer) matches(info socketInfo) bool {
	return (p.UID == nil || *p.UID == info.UID) && (p.GID == nil || *p.GID == info.GID)
}

// socketInfo identifies the process that connected to a unix socket, with its user and group at that time.
type socketInfo struct {
	credentials.CommonAuthInfo
	UID, GID uint32
	PID      int
}

// AuthType implements credentials.AuthInfo.
func (socketInfo) AuthType() string { return "unix peer" }

// AuthType implements credentials.AuthInfo: in-process callers have the Identity that InProcess was given.
func (Identity) AuthType() string { return "in process" }

// Socket returns the credentials for a unix socket's listener.
func Socket() credentials.TransportCredentials {
	return handshake(func(c net.Conn) (credentials.AuthInfo, error) { return peerOf(c) })
}

// InProcess returns the credentials for a listener that only this process can reach.
func InProcess(who Identity) credentials.TransportCredentials {
	return handshake(func(net.Conn) (credentials.AuthInfo, error) { return who, nil })
}

// ProcessOf names the process at the other end of a unix socket; "" if it is not known.
func ProcessOf(c net.Conn) string {
	info, err := peerOf(c)
	if err != nil {
		return ""
	}
	return info.identity().Client()
}

// identity is the caller's identity where the options name no peers.
func (info socketInfo) identity() Identity {
	return Identity{Name: fmt.Sprintf("uid %d", info.UID), Process: info.PID}
}

func peerOf(c net.Conn) (info socketInfo, err error) {
	raw, ok := c.(syscall.Conn)
	if !ok {
		return info, fmt.Errorf("%T is no socket", c)
	}
	sock, err := raw.SyscallConn()
	if err != nil {
		return info, err
	}
	var failed error
	err = sock.Control(func(fd uintptr) { info, failed = peerCredentials(int(fd)) })
	info.CommonAuthInfo = credentials.CommonAuthInfo{SecurityLevel: credentials.NoSecurity}
	return info, errors.Join(err, failed)
}

// handshake identifies the other end of a connection, without encryption.
type handshake func(net.Conn) (credentials.AuthInfo, error)

// ServerHandshake implements credentials.TransportCredentials.
func (h handshake) ServerHandshake(c net.Conn) (net.Conn, credentials.AuthInfo, error) {
	info, err := h(c)
	return c, info, err
}

// ClientHandshake implements credentials.TransportCredentials.
func (handshake) ClientHandshake(context.Context, string, net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.ErrUnsupported
}

// Info implements credentials.TransportCredentials.
func (handshake) Info() credentials.ProtocolInfo { return credentials.ProtocolInfo{} }

// Clone implements credentials.TransportCredentials.
func (h handshake) Clone() credentials.TransportCredentials { return h }

// OverrideServerName implements credentials.TransportCredentials.
func (handshake) OverrideServerName(string) error { return errors.ErrUnsupported }
