package auth

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"

	"google.golang.org/grpc/credentials"
)

// Peer is a process that may use a unix socket, by what the system says of it.
type Peer struct {
	// UID and GID are its effective user and group; one of them may be nil, which is any.
	UID    *uint32 `yaml:"uid" json:"uid,omitempty"`
	GID    *uint32 `yaml:"gid" json:"gid,omitempty"`
	Tenant string  `yaml:"tenant" json:"tenant,omitempty"`
}

// Validate refuses what says nothing.
func (p Peer) Validate() error {
	if p.UID == nil && p.GID == nil {
		return errors.New("must have a uid, a gid or both")
	}
	return checkTenant(p.Tenant)
}

func (p Peer) matches(info socketInfo) bool {
	return (p.UID == nil || *p.UID == info.UID) && (p.GID == nil || *p.GID == info.GID)
}

// socketInfo is who connected to a unix socket: the process, and the user and the group that it
// had then.
type socketInfo struct {
	credentials.CommonAuthInfo
	UID, GID uint32
	PID      int
}

// AuthType implements credentials.AuthInfo.
func (socketInfo) AuthType() string { return "unix peer" }

// AuthType implements credentials.AuthInfo: callers within the process are who they were made
// to be.
func (Identity) AuthType() string { return "in process" }

// Socket are the credentials of a unix socket's listener.
func Socket() credentials.TransportCredentials {
	return handshake(func(c net.Conn) (credentials.AuthInfo, error) { return peerOf(c) })
}

// InProcess are the credentials of a listener that only the process itself can reach.
func InProcess(who Identity) credentials.TransportCredentials {
	return handshake(func(net.Conn) (credentials.AuthInfo, error) { return who, nil })
}

// ProcessOf names the process at the other end of a unix socket; "" if it is gone.
func ProcessOf(c net.Conn) string {
	info, err := peerOf(c)
	if err != nil {
		return ""
	}
	return info.identity().Client()
}

// identity is who a process is where nothing is said of its user.
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

// handshake says who is at the other end of a connection, on which nothing is encrypted.
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
