package auth

import "golang.org/x/sys/unix"

func peerCredentials(fd int) (uid, gid uint32, err error) {
	c, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err != nil {
		return 0, 0, err
	}
	return c.Uid, c.Groups[0], nil
}
