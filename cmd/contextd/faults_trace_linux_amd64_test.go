package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// fault is injected into one system call of a process.
type fault struct {
	// at is the call's number among those on files of the directory, from 1; 0 is no fault.
	at int
	// errno is the error that the call returns without being executed. With 0 the process is killed instead.
	errno syscall.Errno
}

// fileCall is a system call on a file of the directory.
type fileCall struct {
	name string // of the call
	file string // relative to the directory
}

// fileCalls are the calls on files, with the position of the argument that is the descriptor or the path.
var fileCalls = map[uint64]struct {
	name     string
	fd, path int // the argument's place, from 0; -1 if there is none
}{
	unix.SYS_READ: {"read", 0, -1}, unix.SYS_PREAD64: {"pread64", 0, -1},
	unix.SYS_WRITE: {"write", 0, -1}, unix.SYS_PWRITE64: {"pwrite64", 0, -1}, unix.SYS_WRITEV: {"writev", 0, -1},
	unix.SYS_FSYNC: {"fsync", 0, -1}, unix.SYS_FDATASYNC: {"fdatasync", 0, -1}, unix.SYS_SYNC_FILE_RANGE: {"sync_file_range", 0, -1},
	unix.SYS_FALLOCATE: {"fallocate", 0, -1}, unix.SYS_FTRUNCATE: {"ftruncate", 0, -1}, unix.SYS_CLOSE: {"close", 0, -1},
	unix.SYS_FSTAT: {"fstat", 0, -1}, unix.SYS_GETDENTS64: {"getdents64", 0, -1}, unix.SYS_FCNTL: {"fcntl", 0, -1},
	unix.SYS_OPENAT: {"openat", -1, 1}, unix.SYS_NEWFSTATAT: {"newfstatat", -1, 1}, unix.SYS_STATFS: {"statfs", -1, 0},
	unix.SYS_RENAMEAT: {"renameat", -1, 1}, unix.SYS_RENAMEAT2: {"renameat2", -1, 1}, unix.SYS_UNLINKAT: {"unlinkat", -1, 1},
	unix.SYS_MKDIRAT: {"mkdirat", -1, 1}, unix.SYS_LINKAT: {"linkat", -1, 1}, unix.SYS_FCHMODAT: {"fchmodat", -1, 1},
}

// traced is a process whose system calls on files of a directory are traced; a fault may be injected into
// one. Calls are counted over all threads, so that a fault has the same number in every run in which the
// process does the same.
type traced struct {
	pid   int
	dir   string
	fault fault
	ended chan struct{} // closed once the process has ended; the fields below may be read then

	status syscall.WaitStatus
	met    *fileCall // the call that got the fault; nil if none did
	calls  []fileCall
}

// trace starts a command. Each of its calls stops until one thread, which traces it, has looked at it.
func trace(t *testing.T, cmd *exec.Cmd, dir string, f fault) *traced {
	t.Helper()
	p := &traced{dir: dir + "/", fault: f, ended: make(chan struct{})}
	started := make(chan error)
	go func() {
		// ptrace is bound to a thread. The goroutine never unlocks it, so it ends with the goroutine.
		runtime.LockOSThread()
		cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
		err := cmd.Start()
		if err == nil {
			p.pid = cmd.Process.Pid
			err = p.begin()
		}
		started <- err
		if err == nil {
			p.follow()
			close(p.ended)
		}
	}()
	if err := <-started; err != nil {
		if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSYS) {
			t.Skipf("SKIPPED: processes cannot be traced here: %v", err)
		}
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.signal(syscall.SIGKILL)
		<-p.ended
	})
	return p
}

// signal sends a signal, unless the process has ended.
func (p *traced) signal(s syscall.Signal) {
	select {
	case <-p.ended:
	default:
		_ = syscall.Kill(p.pid, s)
	}
}

// begin continues the process after its first stop, at the exec.
func (p *traced) begin() error {
	if _, err := wait4(p.pid, &p.status); err != nil {
		return err
	}
	if err := syscall.PtraceSetOptions(p.pid, unix.PTRACE_O_TRACECLONE|unix.PTRACE_O_TRACESYSGOOD|unix.PTRACE_O_EXITKILL); err != nil {
		return err
	}
	return syscall.PtraceSyscall(p.pid, 0)
}

// wait4 waits for a child of this thread, or for one of the child's threads.
func wait4(pid int, status *syscall.WaitStatus) (tid int, err error) {
	for {
		tid, err = syscall.Wait4(pid, status, unix.WALL|unix.WNOTHREAD, nil)
		if !errors.Is(err, syscall.EINTR) {
			return tid, err
		}
	}
}

// follow traces the process to its end.
func (p *traced) follow() {
	known := map[int]bool{p.pid: true}
	inCall := map[int]bool{}
	failed := map[int]bool{}
	for {
		var status syscall.WaitStatus
		tid, err := wait4(-1, &status)
		if err != nil {
			return // all threads have ended
		}
		if !status.Stopped() {
			if tid == p.pid {
				p.status = status
			}
			continue
		}
		var deliver int
		switch s := status.StopSignal(); {
		case s == syscall.SIGTRAP|0x80:
			if inCall[tid] = !inCall[tid]; inCall[tid] {
				failed[tid] = p.enter(tid)
			} else if failed[tid] {
				p.leave(tid)
			}
		case s == syscall.SIGTRAP: // a thread was created
		case s == syscall.SIGSTOP && !known[tid]:
		default:
			deliver = int(s)
		}
		known[tid] = true
		_ = syscall.PtraceSyscall(tid, deliver) // fails if the process was killed
	}
}

// enter looks at a call before it is executed, and reports whether it must fail.
func (p *traced) enter(tid int) (fails bool) {
	var regs syscall.PtraceRegs
	if syscall.PtraceGetRegs(tid, &regs) != nil {
		return false // killed
	}
	call, found := fileCalls[regs.Orig_rax]
	if !found {
		return false
	}
	arguments := []uint64{regs.Rdi, regs.Rsi, regs.Rdx}
	var path string
	if call.fd >= 0 {
		path, _ = os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", p.pid, int32(arguments[call.fd])))
	} else {
		path = text(tid, uintptr(arguments[call.path]))
	}
	file, found := strings.CutPrefix(path+"/", p.dir)
	if !found {
		return false
	}
	made := fileCall{call.name, strings.TrimSuffix(file, "/")}
	p.calls = append(p.calls, made)
	if len(p.calls) != p.fault.at {
		return false
	}
	p.met = &made
	if p.fault.errno == 0 {
		_ = syscall.Kill(p.pid, syscall.SIGKILL)
		return false
	}
	regs.Orig_rax = ^uint64(0) // an invalid number: nothing is executed
	_ = syscall.PtraceSetRegs(tid, &regs)
	return true
}

// leave sets the result of a call that was not executed.
func (p *traced) leave(tid int) {
	var regs syscall.PtraceRegs
	if syscall.PtraceGetRegs(tid, &regs) == nil {
		regs.Rax = uint64(-int64(p.fault.errno))
		_ = syscall.PtraceSetRegs(tid, &regs)
	}
}

// text reads a string from the process's memory.
func text(tid int, at uintptr) string {
	var out []byte
	for chunk := make([]byte, 64); len(out) < unix.PathMax; at += uintptr(len(chunk)) {
		n, err := syscall.PtracePeekData(tid, at, chunk)
		if end := bytes.IndexByte(chunk[:n], 0); end >= 0 {
			return string(append(out, chunk[:end]...))
		}
		out = append(out, chunk[:n]...)
		if err != nil || n == 0 {
			return string(out)
		}
	}
	return string(out)
}
