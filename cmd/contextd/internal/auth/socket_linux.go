package auth

import "golang.org/x/sys/unix"

func peerCredentials(fd int) (p socketInfo, err error) {
	c, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return p, err
	}
	return socketInfo{UID: c.Uid, GID: c.Gid, PID: int(c.Pid)}, nil
}
