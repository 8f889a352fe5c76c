package main

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/contextd/contextd/cmd/contextd/internal/cli"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

var (
	onePoint  = flag.String("point", "", "the only point for TestFaultSyscalls to try, such as 137:EIO")
	maxPoints = flag.Int("points", 0, "how many points TestFaultSyscalls draws; 0 is 10, or 1000 in full")
)

// point is a system call at which a fault is injected.
type point struct {
	fileCall
	fault
	what string // EIO, ENOSPC or kill
}

func (p point) String() string { return fmt.Sprintf("%d:%s (%s %s)", p.at, p.what, p.name, p.file) }

// grows are the calls that may need space on the disk.
var grows = map[string]bool{
	"write": true, "pwrite64": true, "writev": true, "fsync": true, "fdatasync": true, "fallocate": true,
	"openat": true, "renameat": true, "mkdirat": true, "linkat": true,
}

// TestFaultSyscalls starts the real program, appends to several sessions until tables and logs were
// rewritten, and stops it. It is repeated for each system call on a file of the data directory, which fails
// with EIO, or with ENOSPC where possible, or at which the process is killed. At the next start acknowledged
// events must be there and batches complete, and verify must find no faults.
func TestFaultSyscalls(t *testing.T) {
	binary := build(t)
	// The template store was killed, so that opening it has work to do.
	template := faultRun{dir: filepath.Join(t.TempDir(), "data"), know: newKnowledge()}
	template.run(t, binary, "first", fault{}, syscall.SIGKILL)
	whole := template.again(t)
	whole.run(t, binary, "then", fault{}, syscall.SIGTERM)
	if whole.state != "stops" {
		t.Fatalf("without a fault it %s\n%s", whole.state, whole.log)
	}

	var points []point
	for i, call := range whole.calls {
		points = append(points, point{call, fault{at: i + 1, errno: syscall.EIO}, "EIO"}, point{call, fault{at: i + 1}, "kill"})
		if grows[call.name] {
			points = append(points, point{call, fault{at: i + 1, errno: syscall.ENOSPC}, "ENOSPC"})
		}
	}
	t.Logf("%d calls on files, %d points; seed %d", len(whole.calls), len(points), *seed)
	if *onePoint != "" {
		points = slices.DeleteFunc(points, func(p point) bool { return !strings.HasPrefix(p.String(), *onePoint+" ") })
	}
	draw := *maxPoints
	switch {
	case draw > 0:
	case inFull():
		draw = 1000
	default:
		draw = 10
	}
	rand.New(rand.NewPCG(*seed, 0)).Shuffle(len(points), func(i, j int) { points[i], points[j] = points[j], points[i] })
	points = points[:min(draw, len(points))]
	tried := map[string]map[string]int{}
	for _, p := range points {
		state := tryPoint(t, binary, template, &p)
		row := p.name + " " + p.what
		if tried[row] == nil {
			tried[row] = map[string]int{}
		}
		tried[row][state]++
	}
	t.Logf("%d points, of which %s", len(points), tally(tried))
}

// tally lists how often each outcome occurred, by row.
func tally(rows map[string]map[string]int) string {
	var out strings.Builder
	for _, row := range slices.Sorted(maps.Keys(rows)) {
		fmt.Fprintf(&out, "\n%-24s", row)
		for _, state := range slices.Sorted(maps.Keys(rows[row])) {
			fmt.Fprintf(&out, "  %s %d", state, rows[row][state])
		}
	}
	return out.String()
}

// tryPoint injects a fault, checks the data directory afterwards, and returns what the daemon did.
func tryPoint(t *testing.T, binary string, template faultRun, p *point) (state string) {
	t.Helper()
	run := template.again(t)
	defer os.RemoveAll(run.dir)
	run.run(t, binary, "then", p.fault, syscall.SIGTERM)
	if run.met == nil {
		return "not reached" // background work happened in another order
	}
	p.fileCall = *run.met // usually the same call
	if strings.Contains(run.log, "goroutine ") {
		t.Errorf("%s: the daemon panicked\n%s", p, run.log)
	}
	if out, err := exec.Command(binary, "verify", "--embedded", run.dir).CombinedOutput(); err != nil {
		t.Errorf("%s: it %s, then verify: %v\n%s\n%s", p, run.state, err, out, run.log)
	}
	again := spawn(t, exec.Command(binary, faultArgs(run.dir)...))
	run.know.verify(t, contextdv1.NewContextServiceClient(again.conn))
	again.kill(t)
	return run.state
}

// faultRun is a run of the daemon on a data directory.
type faultRun struct {
	*traced
	dir   string
	know  *knowledge // what the directory must have
	state string     // how the run ended
	log   string
}

// again returns a run on a copy of the directory.
func (r faultRun) again(t *testing.T) faultRun {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	copyDir(t, r.dir, dir)
	return faultRun{dir: dir, know: r.know.clone()}
}

const faultAppends = 40

// run starts the daemon, appends as the seed decides until a call fails, and stops it.
func (r *faultRun) run(t *testing.T, binary, name string, f fault, end syscall.Signal) {
	t.Helper()
	logFile, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer logFile.Close()
	socket := filepath.Join(t.TempDir(), "c.sock")
	cmd := exec.Command(binary, append(faultArgs(r.dir), "--unix-socket="+socket)...)
	cmd.Stderr = logFile
	r.traced = trace(t, cmd, r.dir, f)
	r.append(name, dialUnix(t, socket))
	r.signal(end)
	select {
	case <-r.ended:
	case <-time.After(time.Minute):
		t.Errorf("%v: it does not stop", f)
		r.signal(syscall.SIGKILL)
		<-r.ended
	}
	switch {
	case r.state != "":
	case r.status.Signaled():
		r.state = "is killed"
	case r.status.ExitStatus() == cli.ExitOK:
		r.state = "stops"
	default:
		r.state = fmt.Sprintf("ends with %d", r.status.ExitStatus())
	}
	log, err := os.ReadFile(logFile.Name())
	if err != nil {
		t.Fatal(err)
	}
	r.log = string(log)
}

// append appends until a call fails.
func (r *faultRun) append(name string, conn *grpc.ClientConn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	go func() {
		select {
		case <-r.ended: // the daemon may never become ready
			cancel()
		case <-ctx.Done():
		}
	}()
	if awaitReady(ctx, conn) != nil {
		return
	}
	client := contextdv1.NewContextServiceClient(conn)
	rng := rand.New(rand.NewPCG(*seed, 1))
	for n := range faultAppends {
		w := &killWriter{session: fmt.Sprintf("s%d", n%3), name: fmt.Sprintf("%s-%d", name, n), rng: rng}
		req := w.next()
		resp, err := client.AppendEvents(ctx, req)
		if err != nil {
			r.know.lose(req)
			if reason := reasonOf(err); reason != "" {
				r.state = "refuses with " + reason
			}
			return
		}
		r.know.ack(w.session, resp)
	}
}
