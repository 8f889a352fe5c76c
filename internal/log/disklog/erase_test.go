package disklog_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/disklog"
	"github.com/contextd/contextd/internal/log/logtest"
)

// secrets are texts that are nowhere else; each marks one kind of data.
type secrets map[string]string

func newSecrets(r *rand.Rand, kinds ...string) secrets {
	s := secrets{}
	for _, kind := range kinds {
		// Letters that do not compress, so that they lie in the files as they are.
		s[kind] = fmt.Sprintf("%016x%016x", r.Uint64(), r.Uint64())
	}
	return s
}

// found names the secrets that a file of the directory holds, with the file. The
// database moves data from file to file meanwhile, and what moves during a look
// may be seen in neither: it looks again until all files it listed stayed.
func (s secrets) found(t testing.TB, dir string) map[string]string {
	t.Helper()
	for {
		found := map[string]string{}
		before := files(t, dir)
		for _, path := range before {
			content, err := os.ReadFile(path)
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
			for kind, secret := range s {
				// Half of it is enough: compression may cut it in two.
				if bytes.Contains(content, []byte(secret[:12])) || bytes.Contains(content, []byte(secret[20:])) ||
					strings.Contains(path, secret) {
					found[kind] = filepath.Base(path)
				}
			}
		}
		if slices.Equal(before, files(t, dir)) {
			return found
		}
	}
}

func files(t testing.TB, dir string) []string {
	t.Helper()
	var paths []string
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// filler is text that does not compress and is too long to be kept in memory.
func filler(r *rand.Rand, size int) string {
	text := make([]byte, size)
	for i := range text {
		text[i] = byte(' ' + r.IntN(95))
	}
	return string(text)
}

// tryEach runs the test with all the ways in which data can come to lie on the
// disk.
func tryEach(t *testing.T, f func(t *testing.T, opts disklog.Options, before, after int)) {
	t.Helper()
	small := disklog.Options{MemTableBytes: 128 << 10}
	inline := small
	inline.DisableValueSeparation = true
	for name, opts := range map[string]disklog.Options{"separated": small, "inline": inline, "defaults": {}} {
		for _, n := range []struct{ before, after int }{{0, 0}, {60, 0}, {0, 60}, {60, 60}} {
			t.Run(fmt.Sprintf("%s/%d before, %d after", name, n.before, n.after), func(t *testing.T) {
				f(t, opts, n.before, n.after)
			})
		}
	}
}

func TestDeletedIsGoneFromTheDisk(t *testing.T) {
	tryEach(t, func(t *testing.T, opts disklog.Options, before, after int) {
		r := rand.New(rand.NewPCG(1, uint64(before*1000+after)))
		dir, ctx := t.TempDir(), t.Context()
		s := open(t, dir, opts)
		others := func(n int, prefix string) {
			for i := range n {
				mustAppend(t, s, fmt.Sprintf("%s%d", prefix, i%7), logtest.Message(fmt.Sprintf("%s%d", prefix, i),
					eventlog.RoleUser, eventlog.Text{Text: filler(r, 6000)}))
			}
		}
		others(before, "before")
		gone := newSecrets(r, "small event", "large event", "event id", "session id", "label", "settings", "call id", "artifact",
			"replaced artifact", "artifact id")
		kept := newSecrets(r, "neighbour")
		// The greatest of all ids: so it bounds tables, and the manifest names it.
		id := "~" + gone["session id"]
		if _, err := s.CreateSession(ctx, eventlog.Session{
			ID: id, Labels: map[string]string{"k": gone["label"]}, Settings: []byte(gone["settings"]),
		}); err != nil {
			t.Fatal(err)
		}
		mustAppend(t, s, id, logtest.Say(gone["event id"]), logtest.Message("x", eventlog.RoleUser, eventlog.Text{Text: gone["small event"]}))
		mustAppend(t, s, "neighbour", logtest.Say(kept["neighbour"]))
		mustAppend(t, s, id, logtest.Message("y", eventlog.RoleUser, eventlog.Text{Text: gone["large event"] + filler(r, 40000)}), logtest.Call("z", gone["call id"]))
		for _, v := range []string{gone["replaced artifact"], gone["artifact"]} {
			if err := s.PutArtifacts(ctx, id, eventlog.Artifact{Kind: "k", Seq: 1, ID: gone["artifact id"], Value: []byte(v)}); err != nil {
				t.Fatal(err)
			}
		}
		others(after, "after")

		// What is looked for can be found, or the test would prove nothing.
		there := gone.found(t, dir)
		for kind := range gone {
			if there[kind] == "" && kind != "replaced artifact" {
				t.Errorf("%s is not found before it is deleted", kind)
			}
		}
		if err := disklog.DeleteErased(ctx, s, id); err != nil {
			t.Fatal(err)
		}
		for kind, file := range gone.found(t, dir) {
			t.Errorf("%s is still in %s", kind, file)
		}
		if kept.found(t, dir)["neighbour"] == "" {
			t.Error("the neighbour's event is not found")
		}
		// Nor does it come back in files that are written later.
		others(40, "later")
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = open(t, dir, opts)
		others(20, "reopened")
		for kind, file := range gone.found(t, dir) {
			t.Errorf("%s is back in %s", kind, file)
		}
		verifyAll(t, s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestDeletedParentIsGoneBeyondItsForks(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	dir, ctx := t.TempDir(), t.Context()
	s := open(t, dir, disklog.Options{MemTableBytes: 128 << 10})
	gone := newSecrets(r, "event", "call id", "artifact", "late artifact", "replaced artifact")
	kept := newSecrets(r, "shared", "shared artifact")
	put := func(seq eventlog.Seq, id, value string) {
		t.Helper()
		if err := s.PutArtifacts(ctx, "s", eventlog.Artifact{Kind: "k", Seq: seq, ID: id, Value: []byte(value + filler(r, 2000))}); err != nil {
			t.Fatal(err)
		}
	}
	mustAppend(t, s, "s", logtest.Message("shared", eventlog.RoleUser, eventlog.Text{Text: kept["shared"] + filler(r, 9000)}))
	put(1, "a", kept["shared artifact"])
	if _, err := s.Fork(ctx, eventlog.ForkRequest{ParentID: "s", At: 1, NewID: "t"}); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, s, "s", logtest.Message("own", eventlog.RoleUser, eventlog.Text{Text: gone["event"] + filler(r, 9000)}), logtest.Call("c", gone["call id"]))
	put(2, "b", gone["artifact"])
	put(1, "late", gone["late artifact"])
	put(1, "a", gone["replaced artifact"])
	for i := range 100 {
		mustAppend(t, s, fmt.Sprint("other", i%5), logtest.Message(fmt.Sprint(i), eventlog.RoleUser, eventlog.Text{Text: filler(r, 5000)}))
	}
	if err := disklog.DeleteErased(ctx, s, "s"); err != nil {
		t.Fatal(err)
	}
	for kind, file := range gone.found(t, dir) {
		t.Errorf("%s is still in %s", kind, file)
	}
	if there := kept.found(t, dir); len(there) != 2 {
		t.Errorf("of what the fork shares only this is left: %v", there)
	}
	a, err := s.Artifact(ctx, "t", "k", 1, "a")
	if err != nil || !strings.HasPrefix(string(a.Value), kept["shared artifact"]) {
		t.Errorf("the fork's artifact is %.40q, %v", a.Value, err)
	}
	verifyAll(t, s)
	if err := disklog.DeleteErased(ctx, s, "t"); err != nil {
		t.Fatal(err)
	}
	for kind, file := range kept.found(t, dir) {
		t.Errorf("%s is still in %s", kind, file)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestDeletedIsGoneUnderLoad(t *testing.T) {
	dir, ctx := t.TempDir(), t.Context()
	s := open(t, dir, disklog.Options{MemTableBytes: 256 << 10})
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for w := range 3 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(3, uint64(w)))
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				mustAppend(t, s, fmt.Sprint("load", w), logtest.Message(fmt.Sprint(i), eventlog.RoleUser, eventlog.Text{Text: filler(r, 3000)}))
			}
		})
	}
	r := rand.New(rand.NewPCG(3, 99))
	var deleters sync.WaitGroup
	for d := range 3 {
		gone := newSecrets(r, "session id", "event", "large event")
		text := filler(r, 30000)
		deleters.Go(func() {
			id := gone["session id"]
			for i := range 5 {
				mustAppend(t, s, id, logtest.Message(fmt.Sprint(i), eventlog.RoleUser, eventlog.Text{Text: gone["event"]}, eventlog.Text{Text: gone["large event"] + text}))
			}
			if err := disklog.DeleteErased(ctx, s, id); err != nil {
				t.Error(err)
			}
			for kind, file := range gone.found(t, dir) {
				t.Errorf("deletion %d: %s is still in %s", d, kind, file)
			}
		})
	}
	deleters.Wait()
	close(stop)
	wg.Wait()
	verifyAll(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// What was written with value separation is read, and deleted, without.
func TestValueSeparationTurnedOff(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	dir := t.TempDir()
	s := open(t, dir, disklog.Options{MemTableBytes: 128 << 10})
	gone := newSecrets(r, "event", "large event")
	for i := range 60 {
		mustAppend(t, s, fmt.Sprint("other", i%5), logtest.Message(fmt.Sprint(i), eventlog.RoleUser, eventlog.Text{Text: filler(r, 5000)}))
		if i == 30 {
			mustAppend(t, s, "s", logtest.Say(gone["event"]), logtest.Message("x", eventlog.RoleUser, eventlog.Text{Text: gone["large event"] + filler(r, 5000)}))
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if blobs, err := filepath.Glob(filepath.Join(dir, "db", "*.blob")); err != nil || len(blobs) == 0 {
		t.Fatalf("no values are separated: %v, %v", blobs, err)
	}
	s = open(t, dir, disklog.Options{MemTableBytes: 128 << 10, DisableValueSeparation: true})
	verifyAll(t, s)
	if err := disklog.DeleteErased(t.Context(), s, "s"); err != nil {
		t.Fatal(err)
	}
	for kind, file := range gone.found(t, dir) {
		t.Errorf("%s is still in %s", kind, file)
	}
	verifyAll(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
