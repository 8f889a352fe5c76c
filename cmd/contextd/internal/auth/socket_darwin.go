package auth

import "golang.org/x/sys/unix"

func peerCredentials(fd int) (p socketInfo, err error) {
	c, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err != nil {
		return p, err
	}
	pid, err := unix.GetsockoptInt(fd, unix.SOL_LOCAL, unix.LOCAL_PEERPID)
	return socketInfo{UID: c.Uid, GID: c.Groups[0], PID: pid}, err
}
