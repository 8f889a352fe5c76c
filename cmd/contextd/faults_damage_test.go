package main

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// damage is a kind of damage to one file of a data directory.
type damage struct {
	file, what string
	do         func(path string) error
}

func (d damage) String() string { return d.file + " " + d.what }

// kind is the kind of file together with the kind of damage.
func (d damage) kind() string {
	name := regexp.MustCompile(`\d+`).ReplaceAllString(d.file, "N")
	if strings.HasPrefix(name, "db/marker.") {
		name = name[:strings.LastIndexByte(name, '.')]
	}
	return fmt.Sprintf("%-28s %s", name, strings.Fields(d.what)[0])
}

// TestFaultDamage flips bits in, truncates and removes every file of a data directory. Either the program
// refuses to start and names the file, or each session is intact or answers DATA_LOSS with its name. verify
// must find the same, and change nothing.
func TestFaultDamage(t *testing.T) {
	binary := build(t)
	for _, store := range []struct {
		name string
		end  syscall.Signal
		args []string
	}{
		{"killed", syscall.SIGKILL, nil},
		{"encrypted and stopped", syscall.SIGTERM, []string{"--encryption-key-file=" + filepath.Join(t.TempDir(), "key")}},
	} {
		t.Run(store.name, func(t *testing.T) {
			if store.args != nil {
				key := strings.TrimPrefix(store.args[0], "--encryption-key-file=")
				if out, err := exec.Command(binary, "keygen", key).CombinedOutput(); err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				t.Setenv("CONTEXTD_ENCRYPTION_KEY_FILE", key)
			}
			left := leftBy(t, binary, store.end)
			rng := rand.New(rand.NewPCG(*seed, 2))
			all := left.damages(t, rng)
			if !inFull() {
				rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
				all = all[:6]
			}
			outcomes := map[string]map[string]int{}
			for _, d := range all {
				outcome := left.outcome(t, binary, d)
				if outcomes[d.kind()] == nil {
					outcomes[d.kind()] = map[string]int{}
				}
				outcomes[d.kind()][outcome]++
			}
			t.Logf("%d damages, seed %d%s", len(all), *seed, tally(outcomes))
		})
	}
}

// leftStore is the data directory of a daemon that ended, and what the daemon had acknowledged.
type leftStore struct {
	dir  string
	know *knowledge
}

// leftBy fills a data directory over several starts, so that tables, value files and logs were rewritten, and
// records contexts.
func leftBy(t *testing.T, binary string, end syscall.Signal) leftStore {
	t.Helper()
	left := leftStore{filepath.Join(t.TempDir(), "data"), newKnowledge()}
	rng := rand.New(rand.NewPCG(*seed, 3))
	const starts = 4
	for start := range starts {
		p := spawn(t, exec.Command(binary, faultArgs(left.dir)...))
		client := contextdv1.NewContextServiceClient(p.conn)
		for n := range 30 {
			// Some sessions are in few files, others in all.
			session := fmt.Sprintf("s%d", n%3)
			if n%2 == 0 {
				session = fmt.Sprintf("start%d", start)
			}
			w := &killWriter{session: session, name: fmt.Sprintf("%d-%d", start, n), rng: rng}
			resp, err := client.AppendEvents(t.Context(), w.next())
			if err != nil {
				t.Fatal(err)
			}
			left.know.ack(session, resp)
		}
		if _, err := assemble(t.Context(), client, &contextdv1.AssembleContextRequest{SessionId: "s0"}); err != nil {
			t.Fatal(err)
		}
		if start < starts-1 {
			p.kill(t)
			continue
		}
		if err := p.cmd.Process.Signal(end); err != nil {
			t.Fatal(err)
		}
		p.wait(t)
	}
	return left
}

// damages lists the damages to try on each file.
func (l leftStore) damages(t *testing.T, rng *rand.Rand) (all []damage) {
	t.Helper()
	const flips = 6
	err := filepath.WalkDir(l.dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		file := strings.TrimPrefix(path, l.dir+"/")
		all = append(all, damage{file, "removed", os.Remove})
		size := info.Size()
		if size == 0 {
			return nil
		}
		for _, to := range []int64{0, size / 2, size - 1} {
			all = append(all, damage{file, fmt.Sprintf("cut to %d of %d bytes", to, size), func(path string) error { return os.Truncate(path, to) }})
		}
		for range flips {
			at, bit := rng.Int64N(size), rng.IntN(8)
			all = append(all, damage{file, fmt.Sprintf("flipped in bit %d of byte %d of %d", bit, at, size), func(path string) error {
				content, err := os.ReadFile(path)
				if err != nil {
					return err
				}
				content[at] ^= 1 << bit
				return os.WriteFile(path, content, 0o600)
			}})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// outcome describes what the program does about a damage.
func (l leftStore) outcome(t *testing.T, binary string, d damage) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	copyDir(t, l.dir, dir)
	if err := d.do(filepath.Join(dir, d.file)); err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	found, verifyErr := exec.Command(binary, "verify", "--embedded", dir).CombinedOutput()

	p := launch(t, exec.Command(binary, faultArgs(dir)...))
	if !p.ready(t) {
		p.wait(t)
		for what, said := range map[string]string{"the daemon": p.log.String(), "verify": string(found)} {
			if !strings.Contains(strings.ToLower(said), strings.ToLower(nameInErrors(d.file))) || strings.Contains(said, "goroutine ") {
				t.Errorf("%s: %s refuses and does not name it: %s", d, what, said)
			}
		}
		if verifyErr == nil {
			t.Errorf("%s: the daemon refuses to start, and verify is content: %s", d, p.log)
		}
		return "refused"
	}
	client := contextdv1.NewContextServiceClient(p.conn)
	damaged := 0
	for session, acked := range l.know.acked {
		switch err := l.whole(t, client, session, acked); {
		case err == nil:
		case status.Code(err) == codes.DataLoss && strings.Contains(err.Error(), `"`+session+`"`):
			damaged++
			// If the session's name is lost, only the file can be named.
			named := strings.Contains(string(found), "\n"+session+": ") || strings.Contains(string(found), "store: "+d.file+"\n")
			if verifyErr == nil || !named {
				t.Errorf("%s: %s is damaged, and verify says: %s", d, session, found)
			}
		default:
			t.Errorf("%s: %s: %v\n%s", d, session, err, p.log)
		}
	}
	p.kill(t)
	switch {
	case damaged > 0:
		return "DATA_LOSS"
	case verifyErr != nil:
		// Only verify reads records and older versions.
		return "named by verify"
	default:
		return "unaffected"
	}
}

// whole reads a session, and returns the error if it cannot be read. If it can, the content must be intact.
func (l leftStore) whole(t *testing.T, client contextdv1.ContextServiceClient, session string, acked map[string]uint64) error {
	t.Helper()
	stream, err := client.ReadEvents(t.Context(), &contextdv1.ReadEventsRequest{SessionId: session})
	if err != nil {
		return err
	}
	var events []*contextdv1.Event
	for {
		resp, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		events = append(events, resp.GetEvents()...)
	}
	if len(events) != len(acked) {
		return fmt.Errorf("it has %d events of %d", len(events), len(acked))
	}
	checkDense(t, session, events)
	for _, e := range events {
		if acked[e.GetEventId()] != e.GetSeq() {
			return fmt.Errorf("event %s is at %d and was acknowledged at %d", e.GetEventId(), e.GetSeq(), acked[e.GetEventId()])
		}
	}
	return nil
}

// nameInErrors is how errors name a file.
func nameInErrors(file string) string {
	if name, found := strings.CutPrefix(file, "db/marker."); found {
		kind, _, _ := strings.Cut(name, ".")
		return "db/marker." + kind
	}
	return filepath.Base(file)
}
