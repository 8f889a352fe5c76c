package disklog_test

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"
	"github.com/cockroachdb/pebble/v2/vfs"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/disklog"
	"github.com/contextd/contextd/internal/log/disklog/keyring"
	"github.com/contextd/contextd/internal/log/logtest"
)

// encrypted is a new operator's key.
func encrypted(t testing.TB) *disklog.Encryption {
	t.Helper()
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	return &disklog.Encryption{Identities: []age.Identity{identity}}
}

func TestConformanceEncrypted(t *testing.T) {
	st := newStores(disklog.Options{Encryption: encrypted(t), IdleSessions: 1, MemTableBytes: 64 << 10, SeparateBytes: 16, CacheBytes: 1 << 20})
	logtest.Run(t, st.inMemory, logtest.Durable(st.reopen))
}

func TestModelEncrypted(t *testing.T) {
	st := newStores(disklog.Options{Encryption: encrypted(t), IdleSessions: 1, MemTableBytes: 64 << 10, SeparateBytes: 16, CacheBytes: 1 << 20})
	logtest.RunModel(t, st.inMemory, logtest.Durable(st.reopen))
}

// secretive makes a session that holds secrets of each kind.
func secretive(t *testing.T, s *disklog.Store, id string, r *rand.Rand) secrets {
	t.Helper()
	all := newSecrets(r, "small event", "large event", "event id", "label", "settings", "call id", "artifact")
	if _, err := s.CreateSession(t.Context(), eventlog.Session{
		ID: id, Labels: map[string]string{"k": all["label"]}, Settings: []byte(all["settings"]),
	}); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, s, id, logtest.Say(all["event id"]), logtest.Message("x", eventlog.RoleUser, eventlog.Text{Text: all["small event"]}))
	mustAppend(t, s, id, logtest.Message("y", eventlog.RoleUser, eventlog.Text{Text: all["large event"] + filler(r, 40000)}), logtest.Call("z", all["call id"]))
	if err := s.PutArtifacts(t.Context(), id, eventlog.Artifact{Kind: "k", Seq: 1, ID: "a", Value: []byte(all["artifact"])}); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestNothingIsReadableWithoutTheKey(t *testing.T) {
	dir, r := t.TempDir(), rand.New(rand.NewPCG(1, 2))
	opts := disklog.Options{Encryption: encrypted(t)}
	plain := open(t, filepath.Join(dir, "plain"), disklog.Options{})
	s := open(t, filepath.Join(dir, "sealed"), opts)
	shown := secretive(t, plain, "s", r)
	hidden := secretive(t, s, "s", r)
	for _, store := range []*disklog.Store{plain, s} {
		if err := store.Close(); err != nil { // which writes tables
			t.Fatal(err)
		}
	}
	// What is looked for can be found, or the test would prove nothing.
	there := shown.found(t, dir)
	for kind := range shown {
		if there[kind] == "" {
			t.Errorf("%s is not found where nothing is encrypted", kind)
		}
	}
	for kind, file := range hidden.found(t, dir) {
		t.Errorf("%s is in %s", kind, file)
	}
	s = open(t, filepath.Join(dir, "sealed"), opts)
	verifyAll(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// copyStore copies a store but not its keys, as a backup does.
func copyStore(t *testing.T, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name == "keys" {
				return filepath.SkipDir
			}
			return os.MkdirAll(filepath.Join(to, name), 0o700)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, name), data, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestDeletedIsUnreadableInBackups(t *testing.T) {
	dir, r := t.TempDir(), rand.New(rand.NewPCG(3, 4))
	opts := disklog.Options{Encryption: encrypted(t)}
	opts.Encryption.Dir = filepath.Join(dir, "keys")
	live, backup := filepath.Join(dir, "live"), filepath.Join(dir, "backup")
	s := open(t, live, opts)
	gone := secretive(t, s, "gone", r)
	kept := secretive(t, s, "kept", r)
	parent := secretive(t, s, "parent", r)
	if _, err := s.Fork(t.Context(), eventlog.ForkRequest{ParentID: "parent", NewID: "child", At: 4}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	copyStore(t, live, backup)

	s = open(t, live, opts)
	for _, id := range []string{"gone", "parent"} {
		if err := disklog.DeleteErased(t.Context(), s, id); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Verify(t.Context(), "child"); err != nil {
		t.Errorf("what a fork shares: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for name, all := range map[string]secrets{"gone": gone, "kept": kept, "parent": parent} {
		for kind, file := range all.found(t, dir) {
			t.Errorf("%s: %s is in %s", name, kind, file)
		}
	}

	// The copy with the keys that there are now.
	restored := open(t, backup, opts)
	listed := map[string]bool{} // whether it is damaged
	all, err := restored.ListSessions(t.Context(), eventlog.SessionQuery{})
	if err != nil {
		t.Fatal(err)
	}
	for _, session := range all {
		listed[session.ID] = session.Damaged
	}
	if damaged, there := listed["gone"]; !there || !damaged || listed["kept"] || listed["child"] {
		t.Errorf("damaged are %v", listed)
	}
	if err := restored.Verify(t.Context(), "kept"); err != nil {
		t.Error(err)
	}
	if err := restored.Verify(t.Context(), "child"); err != nil {
		t.Error(err)
	}
	var corrupt *eventlog.CorruptError
	if err := restored.Verify(t.Context(), "gone"); !errors.As(err, &corrupt) || corrupt.Session != "gone" {
		t.Errorf("a session whose key was destroyed: %v", err)
	}
	mustAppend(t, restored, "kept", logtest.Say("later"))
	if err := restored.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestAPlainStoreIsEncryptedFromThenOn(t *testing.T) {
	dir, r := t.TempDir(), rand.New(rand.NewPCG(5, 6))
	s := open(t, dir, disklog.Options{})
	mustAppend(t, s, "s", logtest.Say("before"))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	opts := disklog.Options{Encryption: encrypted(t)}
	s = open(t, dir, opts)
	mustAppend(t, s, "s", logtest.Say("after"))
	hidden := secretive(t, s, "t", r)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir, opts)
	verifyAll(t, s)
	if session, err := s.Session(t.Context(), "s"); err != nil || session.Head != 2 {
		t.Errorf("%v, %v", session, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for kind, file := range hidden.found(t, dir) {
		t.Errorf("%s is in %s", kind, file)
	}
}

func TestOpeningWithOtherKeysIsRefused(t *testing.T) {
	dir, mine := t.TempDir(), encrypted(t)
	s := open(t, dir, disklog.Options{Encryption: mine})
	mustAppend(t, s, "s", logtest.Say("a"))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	other := encrypted(t)
	foreign := &disklog.Encryption{Identities: other.Identities, Dir: filepath.Join(t.TempDir(), "keys")}
	if err := open(t, filepath.Join(t.TempDir(), "store"), disklog.Options{Encryption: foreign}).Close(); err != nil {
		t.Fatal(err)
	}
	nowhere := &disklog.Encryption{Identities: mine.Identities, Dir: filepath.Join(t.TempDir(), "keys")}
	for name, encryption := range map[string]*disklog.Encryption{"no key": nil, "no keyring": nowhere, "another store's keyring": foreign} {
		var refused *disklog.FormatError
		if _, err := disklog.Open(dir, disklog.Options{Encryption: encryption}); !errors.As(err, &refused) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var wrong *keyring.KeyError
	if _, err := disklog.Open(dir, disklog.Options{Encryption: other}); !errors.As(err, &wrong) {
		t.Errorf("another key: %v", err)
	}
	rotated := &disklog.Encryption{Identities: append(other.Identities, mine.Identities...)}
	for _, encryption := range []*disklog.Encryption{rotated, other} {
		s := open(t, dir, disklog.Options{Encryption: encryption})
		verifyAll(t, s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A second store is not given the keys of the first, whose sessions would be lost with its own.
func TestKeysAreOfOneStore(t *testing.T) {
	opts := disklog.Options{Encryption: encrypted(t)}
	opts.Encryption.Dir = filepath.Join(t.TempDir(), "keys")
	s := open(t, filepath.Join(t.TempDir(), "one"), opts)
	mustAppend(t, s, "s", logtest.Say("a"))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	var refused *disklog.FormatError
	if _, err := disklog.Open(filepath.Join(t.TempDir(), "two"), opts); !errors.As(err, &refused) || !strings.Contains(err.Error(), "are of another store") {
		t.Errorf("got %v", err)
	}
}

// A copy that was restored makes sessions and deletes them, and the keys of those that came after the
// copy, which have the numbers that its own would have, stay.
func TestRestoredStoreLeavesLaterKeys(t *testing.T) {
	dir := t.TempDir()
	data, restored := filepath.Join(dir, "data"), filepath.Join(dir, "restored")
	opts := disklog.Options{Encryption: encrypted(t)}
	opts.Encryption.Dir = filepath.Join(dir, "keys")
	use := func(dir string, f func(*disklog.Store)) {
		t.Helper()
		s := open(t, dir, opts)
		f(s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	use(data, func(s *disklog.Store) { mustAppend(t, s, "before", logtest.Say("a")) })
	if err := os.CopyFS(restored, os.DirFS(data)); err != nil {
		t.Fatal(err)
	}
	use(data, func(s *disklog.Store) { mustAppend(t, s, "later", logtest.Say("b")) })
	use(restored, func(s *disklog.Store) {
		for _, id := range []string{"trial", "another"} {
			mustAppend(t, s, id, logtest.Say("c"))
			if _, err := s.Fork(t.Context(), eventlog.ForkRequest{ParentID: id, At: 1, NewID: "fork-of-" + id}); err != nil {
				t.Fatal(err)
			}
			for _, id := range []string{id, "fork-of-" + id} {
				if err := s.DeleteSession(t.Context(), id, 0, nil); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
	use(data, func(s *disklog.Store) { verifyAll(t, s) })
}

// A store of a later version is refused as such, and not as damaged; a damaged one is.
func TestLaterEncryptionIsRefused(t *testing.T) {
	dir, key := t.TempDir(), encrypted(t)
	if err := open(t, dir, disklog.Options{Encryption: key}).Close(); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"contextd-encryption 2\nelse\n":   "version 2, and this program knows version 1",
		"contextd-encryption 1\nk":        "ENCRYPTION is damaged",
		"contextd-encryption 1\nkeyring ": "ENCRYPTION is damaged",
	} {
		if err := os.WriteFile(filepath.Join(dir, "ENCRYPTION"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var refused *disklog.FormatError
		if _, err := disklog.Open(dir, disklog.Options{Encryption: key}); !errors.As(err, &refused) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestKeysOutliveACrash takes the disk away as a power failure does: a value that is there has
// its key, wherever the keys are.
func TestKeysOutliveACrash(t *testing.T) {
	for _, dir := range []string{"", "elsewhere/deep/keys"} {
		t.Run("in "+dir, func(t *testing.T) {
			disk := vfs.NewCrashableMem()
			opts := disklog.Options{FS: disk, Encryption: encrypted(t)}
			opts.Encryption.Dir = dir
			s := open(t, "data/log", opts)
			mustAppend(t, s, "s", logtest.Say("a"))
			opts.FS = disk.CrashClone(vfs.CrashCloneCfg{})
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = open(t, "data/log", opts)
			verifyAll(t, s)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}
