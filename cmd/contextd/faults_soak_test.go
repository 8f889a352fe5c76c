package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/contextd/contextd/cmd/contextd/internal/cli"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

var soakTime = flag.Duration("soak", 5*time.Second, "how long TestFaultSoak lasts")

// TestFaultSoak has agents live through whole sessions for a long time: they append, assemble, compact, fork,
// import, read everything back and delete it, while other clients vanish during calls. The program must not
// grow, and must hold the same resources at the end as at the beginning.
func TestFaultSoak(t *testing.T) {
	const agents, samples = 8, 20
	t.Setenv("GOMEMLIMIT", heapLimit)
	dir := filepath.Join(t.TempDir(), "data")
	p := spawnWatched(t, "--log-level=error", "--data-dir="+dir, "--default-budget={tokenizer: o200k_base}")
	before := p.usage(t)
	ctx, cancel := context.WithTimeout(t.Context(), *soakTime)
	defer cancel()
	var lives atomic.Int64
	sum := newMixed()
	var all sync.WaitGroup
	for i := range agents {
		rng := rand.New(rand.NewPCG(*seed, uint64(i)))
		all.Go(func() {
			conn, err := connectUnix(p.socket)
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			m := &killMixer{
				killable: &killable{cmd: p.cmd, socket: p.socket, conn: conn, client: contextdv1.NewContextServiceClient(conn)},
				rng:      rng,
			}
			if i == 0 {
				m.backups = t.TempDir() // one at a time
			}
			for n := 0; ctx.Err() == nil && !t.Failed(); n++ {
				m.name = fmt.Sprintf("a%d-%d", i, n)
				if err := m.live(t); err != nil {
					t.Errorf("%s: %v\n%s", m.name, err, p.log)
				}
				lives.Add(1)
				sum.note("", func() {
					for kind, n := range m.know.done {
						sum.done[kind] += n
					}
				})
			}
		})
	}
	all.Go(func() {
		for rng := rand.New(rand.NewPCG(*seed, agents)); ctx.Err() == nil; {
			p.vanish(ctx, rng)
		}
	})
	var seen []usage
	for tick := time.Tick(*soakTime / samples); len(seen) < samples-1; {
		<-tick
		seen = append(seen, p.usage(t))
		t.Logf("%3d%% %6d sessions lived, %v", 100*len(seen)/samples, lives.Load(), seen[len(seen)-1])
	}
	all.Wait()
	after := p.settles(t, usage{goroutines: before.goroutines + 10, descriptors: before.descriptors + 10})
	t.Logf("seed %d, %s: %d sessions lived; before %v, after %v, %d MiB at most; %v", *seed, *soakTime, lives.Load(), before, after, p.peak(t)>>20, sum)
	if peak := p.peak(t); peak > podMemory {
		t.Errorf("it took %d MiB; the pod has %d", peak>>20, podMemory>>20)
	}
	if *soakTime >= time.Minute {
		if sum.done["backups"] == 0 {
			t.Error("no backup was ever whole")
		}
		early, late := seen[samples/4:samples/2], seen[samples-samples/4:]
		for what, of := range map[string]func(usage) int{
			"goroutines":  func(u usage) int { return u.goroutines },
			"descriptors": func(u usage) int { return u.descriptors },
			"MiB":         func(u usage) int { return int(u.resident >> 20) },
		} {
			if was, is := least(early, of), least(late, of); is > was+was/3 {
				t.Errorf("in its second quarter it held %d %s at least, in its last %d", was, what, is)
			}
		}
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := p.wait(t); code != cli.ExitOK {
		t.Errorf("it ended with %d\n%s", code, p.log)
	}
	if out, err := exec.Command(build(t), "verify", "--embedded", dir).CombinedOutput(); err != nil {
		t.Errorf("verify: %v\n%s", err, out)
	}
}

// least is the smallest value among samples, which is what is held between peaks. A leak raises it.
func least(seen []usage, of func(usage) int) int {
	n := of(seen[0])
	for _, u := range seen {
		n = min(n, of(u))
	}
	return n
}

// live plays a session from its first event to its deletion.
func (m *killMixer) live(t *testing.T) error {
	m.know = newKnowledge()
	session := m.name
	w := &killWriter{client: m.client, know: m.know, session: session, name: session, rng: m.rng}
	for turn := range 30 {
		resp, err := m.client.AppendEvents(t.Context(), w.next())
		if err != nil {
			return err
		}
		m.know.ack(session, resp)
		if err := m.assemble(session); err != nil {
			return err
		}
		if turn%10 == 9 {
			if err := m.compact(session, []string{"mask", "window", "summarize"}[turn/10]); err != nil {
				return err
			}
		}
	}
	if err := firstOf(m.fork(session, session+"-fork"), m.importInto(session+"-import")); err != nil {
		return err
	}
	if m.backups != "" && m.rng.IntN(5) == 0 {
		if err := m.backup(t, filepath.Join(m.backups, session)); err != nil {
			return err
		}
	}
	m.know.verify(t, m.client)
	m.own = append(m.own, session)
	for len(m.own) > 0 {
		if err := m.delete(); err != nil {
			return err
		}
	}
	return nil
}
