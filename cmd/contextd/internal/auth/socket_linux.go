package auth

import "golang.org/x/sys/unix"

func peerCredentials(fd int) (uid, gid uint32, err error) {
	c, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return 0, 0, err
	}
	return c.Uid, c.Gid, nil
}
