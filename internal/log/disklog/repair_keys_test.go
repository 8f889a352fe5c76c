package disklog

import (
	"maps"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/contextd/contextd/internal/log/logtest"
)

// TestRepairOfKeys loses the keys of some sessions, and then what all keys are read with.
func TestRepairOfKeys(t *testing.T) {
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	encryption := &Encryption{Identities: []age.Identity{identity}}
	fs, had := fillForRepair(t, encryption)
	disk := files{t, fs}
	keys := disk.get("keys/000000000000.keys")
	clear(keys[64*1 : 64*3]) // of s0 and s1, of which the forks show a part
	disk.put("keys/000000000000.keys", keys)
	r := repaired(t, fs, encryption, had, "keys")
	lost := map[string]Loss{}
	for _, l := range r.Losses {
		lost[l.Session] = l
	}
	for _, id := range []string{"s0", "s1", "f-s0", "f-s1"} {
		if l := lost[id]; l.Kept != 0 || l.Gone != !strings.HasPrefix(id, "f-") || !strings.Contains(l.Why, "key was destroyed") {
			t.Errorf("%s: %+v", id, l)
		}
	}
	if len(lost) != 4 {
		t.Errorf("the losses are %+v", lost)
	}
	if err := fs.Remove("log/keys/master.age"); err != nil {
		t.Fatal(err)
	}
	disk.put("FORMAT", nil)
	if _, err := RepairDir(t.Context(), "log", Options{FS: fs, Encryption: encryption}, false, time.Unix(3e9, 0)); err == nil || !strings.Contains(err.Error(), "master.age in log/keys") {
		t.Errorf("without the keyring: %v", err)
	}
	if _, err := RepairDir(t.Context(), "log", Options{FS: fs}, false, time.Unix(3e9, 0)); err == nil || !strings.Contains(err.Error(), "no key was given") {
		t.Errorf("without a key: %v", err)
	}
}

// TestRepairWithKeysOf has a store repaired with other keys than its own: it is refused or repaired without a
// loss, and what is refused is left as it is.
func TestRepairWithKeysOf(t *testing.T) {
	searchable(t)
	key := func() *Encryption {
		identity, err := age.GenerateX25519Identity()
		if err != nil {
			t.Fatal(err)
		}
		return &Encryption{Identities: []age.Identity{identity}}
	}
	mine, other := key(), key()
	foreign := &Encryption{Identities: other.Identities, Dir: "other/keys"}
	const noFile = "-"
	for name, c := range map[string]struct {
		made, given *Encryption
		file        string // ENCRYPTION; empty for as it was
		refused     string // empty if it is repaired
	}{
		"another store's keys":                  {made: mine, given: foreign, refused: "are of another store"},
		"no key":                                {made: mine, refused: "no key was given"},
		"a later version":                       {made: mine, given: mine, file: "contextd-encryption 2\nelse\n", refused: "version 2, and this program knows version 1"},
		"no key and no ENCRYPTION":              {made: mine, file: noFile, refused: "no key was given"},
		"no ENCRYPTION":                         {made: mine, given: mine, file: noFile},
		"a damaged ENCRYPTION":                  {made: mine, given: mine, file: "contextd-encryption 1\nkeyring 1"},
		"a key, and a plain store":              {given: mine},
		"another store's keys, and a plain one": {given: foreign},
	} {
		t.Run(name, func(t *testing.T) {
			fs := vfs.NewMem()
			for dir, encryption := range map[string]*Encryption{"log": c.made, "other": other} {
				s, err := Open(dir, Options{FS: fs, Encryption: encryption})
				if err != nil {
					t.Fatal(err)
				}
				add(t, s, "s", logtest.Say("a"))
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
			disk := files{t, fs}
			disk.remove(inventoryFile)
			switch c.file {
			case "":
			case noFile:
				disk.remove(encryptionFile)
			default:
				disk.put(encryptionFile, []byte(c.file))
			}
			before := disk.snapshot()
			r, err := RepairDir(t.Context(), "log", Options{FS: fs, Encryption: c.given}, false, time.Unix(1e9, 0))
			if c.refused != "" {
				if err == nil || !strings.Contains(err.Error(), c.refused) {
					t.Errorf("got %+v, %v; want %q", r, err, c.refused)
				}
				if !maps.Equal(before, disk.snapshot()) {
					t.Error("the files were changed")
				}
				return
			}
			if err != nil || len(r.Losses) > 0 || r.Whole != 1 {
				t.Fatalf("got %+v, %v", r, err)
			}
			s, err := Open("log", Options{FS: fs, Encryption: c.made})
			if err != nil {
				t.Fatal(err)
			}
			if has := knownOf(t, s); len(has["s"].events) != 1 {
				t.Errorf("it has %v", has)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}
