package disklog

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/disklog/durable"
	"github.com/contextd/contextd/internal/log/logtest"
)

// files are those of a store that damage is tried on.
type files struct {
	t  *testing.T
	fs vfs.FS
}

// list returns the files of the database with a suffix.
func (f files) list(suffix string) []string {
	f.t.Helper()
	names, err := f.fs.List("log/db")
	if err != nil {
		f.t.Fatal(err)
	}
	slices.Sort(names)
	return slices.DeleteFunc(names, func(name string) bool { return !strings.HasSuffix(name, suffix) })
}

func (f files) get(name string) []byte {
	f.t.Helper()
	text, err := durable.Read(f.fs, "log/"+name, 1<<30)
	if err != nil {
		f.t.Fatal(err)
	}
	return []byte(text)
}

func (f files) put(name string, content []byte) {
	f.t.Helper()
	if err := durable.Write(f.fs, "log/"+name, string(content), true); err != nil {
		f.t.Fatal(err)
	}
}

func (f files) remove(name string) {
	f.t.Helper()
	if err := f.fs.Remove("log/" + name); err != nil {
		f.t.Fatal(err)
	}
}

// snapshot returns all files, the lock aside.
func (f files) snapshot() map[string]string {
	f.t.Helper()
	all := map[string]string{}
	for _, dir := range []string{"", "db/"} {
		names, err := f.fs.List("log/" + dir)
		if err != nil {
			if dir == "" {
				f.t.Fatal(err)
			}
			continue
		}
		for _, name := range names {
			if info, err := f.fs.Stat("log/" + dir + name); err != nil || info.IsDir() {
				continue
			}
			if name != lockFile && name != ownerFile {
				all[dir+name] = string(f.get(dir + name))
			}
		}
	}
	return all
}

const sessionsOfSweep, eventsOfSweep = 6, 40

// fillForSweep makes sessions that lie in several tables and blob files. Values of
// every second one are kept apart from their keys.
func fillForSweep(t *testing.T, fs vfs.FS) {
	t.Helper()
	s := openMem(t, fs)
	for i := range sessionsOfSweep {
		text := strings.Repeat("near ", 60)
		if i%2 == 0 {
			text = strings.Repeat("apart ", 300+20*i)
		}
		id := fmt.Sprintf("s%d", i)
		for e := range eventsOfSweep {
			add(t, s, id, logtest.Message(fmt.Sprintf("%s-%d", id, e), eventlog.RoleUser, eventlog.Text{Text: fmt.Sprintf("%s %d %s", id, e, text)}))
		}
		if err := s.PutArtifacts(t.Context(), id, eventlog.Artifact{Kind: "k", ID: "a", Value: []byte(text)}); err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 {
			continue
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = openMem(t, fs)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// survey reads all sessions. Each is whole or says that it, by name, is damaged.
func survey(t *testing.T, s *Store, what string) (whole int) {
	t.Helper()
	for i := range sessionsOfSweep {
		id := fmt.Sprintf("s%d", i)
		err := s.Verify(t.Context(), id)
		if err == nil {
			var events []eventlog.Event
			if events, err = logtest.Collect(s.Read(t.Context(), id, 1, 0)); err == nil && len(events) != eventsOfSweep {
				t.Fatalf("%s: %s has %d events", what, id, len(events))
			}
		}
		if err == nil {
			_, err = s.Artifact(t.Context(), id, "k", 0, "a")
		}
		if err == nil {
			whole++
			continue
		}
		corrupt, ok := errors.AsType[*eventlog.CorruptError](err)
		if !ok || corrupt.Session != id || strings.Contains(err.Error(), "\n") {
			t.Fatalf("%s: session %s answers %v", what, id, err)
		}
	}
	return whole
}

// TestFlippedBytes flips bytes all over the tables and the files of values: each
// session is then whole or known to be damaged, and the store goes on.
func TestFlippedBytes(t *testing.T) {
	places := 24
	if testing.Short() {
		places = 6
	}
	fs := vfs.NewMem()
	fillForSweep(t, fs)
	disk := files{t, fs}
	if len(disk.list(tableSuffix)) < 2 || len(disk.list(blobSuffix)) < 2 {
		t.Fatalf("too few files: %v, %v", disk.list(tableSuffix), disk.list(blobSuffix))
	}
	spared, hit := 0, 0
	for _, name := range append(disk.list(tableSuffix), disk.list(blobSuffix)...) {
		content := disk.get("db/" + name)
		for place := range places {
			at := place * (len(content) - 1) / (places - 1)
			what := fmt.Sprintf("%s at %d of %d", name, at, len(content))
			// Each time on a copy: the store may tidy up.
			copied, err := cloneOf(fs)
			if err != nil {
				t.Fatal(err)
			}
			damaged := bytes.Clone(content)
			damaged[at] ^= 1 << (place % 8)
			files{t, copied}.put("db/"+name, damaged)
			s := openMem(t, copied)
			whole := survey(t, s, what)
			spared += whole
			hit += sessionsOfSweep - whole
			listed, err := s.ListSessions(t.Context(), eventlog.SessionQuery{})
			if _, corrupt := errors.AsType[*eventlog.CorruptError](err); err != nil && (!corrupt || whole > 0) {
				t.Errorf("%s: list: %v", what, err)
			}
			if err == nil && len(listed) == 0 {
				t.Errorf("%s: no session is listed, as if there were none", what)
			}
			for _, l := range listed {
				if _, err := s.Session(t.Context(), l.ID); err == nil && l.Damaged {
					t.Errorf("%s: %s is listed as damaged and can be read", what, l.ID)
				}
			}
			if len(listed) < whole {
				t.Errorf("%s: %d sessions are whole and %d listed", what, whole, len(listed))
			}
			if err := s.Healthy(); err != nil {
				t.Fatalf("%s: the store is %v", what, err)
			}
			if whole > 0 {
				appendWhereWhole(t, s, what)
			}
			if err := s.Close(); err != nil {
				t.Fatalf("%s: close: %v", what, err)
			}
		}
	}
	t.Logf("%d sessions were whole, %d damaged", spared, hit)
	if spared < 2*hit || hit == 0 {
		t.Errorf("%d sessions were whole and %d damaged: the damage is not kept to where it is", spared, hit)
	}
}

// TestForeignValues puts files of values in the place of each other, as who mixes up two copies of a directory does:
// values are looked for where there are none.
func TestForeignValues(t *testing.T) {
	fs := vfs.NewMem()
	fillForSweep(t, fs)
	disk := files{t, fs}
	names := disk.list(blobSuffix)
	swapped := 0
	for i, name := range names {
		for _, other := range names[:i] {
			one, two := disk.get("db/"+name), disk.get("db/"+other)
			if len(one) == len(two) {
				continue
			}
			swapped++
			copied, err := cloneOf(fs)
			if err != nil {
				t.Fatal(err)
			}
			files{t, copied}.put("db/"+name, two)
			files{t, copied}.put("db/"+other, one)
			s := openMem(t, copied)
			what := name + " and " + other
			if whole := survey(t, s, what); whole == 0 || whole == sessionsOfSweep {
				t.Errorf("%s: %d sessions are whole", what, whole)
			}
			appendWhereWhole(t, s, what)
			if err := errors.Join(s.Healthy(), s.Close()); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
	if swapped == 0 {
		t.Errorf("all of %v are of one size", names)
	}
}

func cloneOf(fs vfs.FS) (vfs.FS, error) {
	copied := vfs.NewMem()
	_, err := vfs.Clone(fs, copied, "log", "log", vfs.CloneSync)
	return copied, err
}

// appendWhereWhole appends to each session that can be read.
func appendWhereWhole(t *testing.T, s *Store, what string) {
	t.Helper()
	for i := range sessionsOfSweep {
		id := fmt.Sprintf("s%d", i)
		if s.Verify(t.Context(), id) != nil {
			continue
		}
		c, err := s.Append(t.Context(), id, eventlog.Batch{Events: []eventlog.Event{logtest.Say("more")}})
		if err == nil {
			_, err = c.Wait(t.Context())
		}
		if err != nil {
			t.Errorf("%s: append to %s: %v", what, id, err)
		}
	}
}

// TestTidyingMeetsDamage has the database compact and delete next to damage: what it cannot
// tidy stays, and the store goes on.
func TestTidyingMeetsDamage(t *testing.T) {
	for _, suffix := range []string{tableSuffix, blobSuffix} {
		for _, change := range []string{"flipped", "cut", "missing"} {
			if suffix == tableSuffix && change != "flipped" {
				continue // is refused at the start
			}
			t.Run(suffix+" "+change, func(t *testing.T) {
				fs := vfs.NewMem()
				fillForSweep(t, fs)
				disk := files{t, fs}
				for _, name := range disk.list(suffix) {
					content := disk.get("db/" + name)
					switch change {
					case "flipped":
						content[len(content)/3] ^= 4
						disk.put("db/"+name, content)
					case "cut":
						disk.put("db/"+name, content[:len(content)/2])
					case "missing":
						disk.remove("db/" + name)
					}
				}
				var logged bytes.Buffer
				s, err := Open("log", Options{FS: fs, Logger: slog.New(slog.NewTextHandler(&logged, nil))})
				if err != nil {
					t.Fatal(err)
				}
				whole := survey(t, s, change)
				for i := range sessionsOfSweep {
					err := DeleteErased(t.Context(), s, fmt.Sprintf("s%d", i))
					if _, ok := errors.AsType[*eventlog.CorruptError](err); err != nil && !ok {
						t.Errorf("delete s%d: %v", i, err)
					}
				}
				add(t, s, "after", logtest.Say("a"))
				if err := errors.Join(s.Healthy(), s.Verify(t.Context(), "after"), s.Close()); err != nil {
					t.Errorf("%d sessions were whole: %v", whole, err)
				}
				if n := strings.Count(logged.String(), "a file of the event log is damaged"); n == 0 || s.Disk().Damaged != n {
					t.Errorf("%d files are damaged, and the log says %s", s.Disk().Damaged, logged.String())
				}
				// The next opening is not kept from serving by what cannot be finished.
				s = openMem(t, fs)
				if err := errors.Join(s.Verify(t.Context(), "after"), s.Close()); err != nil {
					t.Error(err)
				}
			})
		}
	}
}
