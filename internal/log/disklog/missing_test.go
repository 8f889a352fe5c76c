package disklog

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/logtest"
)

// left returns what a process left that stopped, or was killed, with one session in
// tables, one in files of values and one in the write-ahead log alone.
func left(t *testing.T, killed bool) vfs.FS {
	t.Helper()
	fs := vfs.NewCrashableMem()
	s := openMem(t, fs)
	for i := range 20 {
		add(t, s, "table", logtest.Say(fmt.Sprint("near ", i)))
		add(t, s, "values", logtest.Say(strings.Repeat(fmt.Sprint("apart ", i), 200)))
	}
	if err := s.flush(); err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		add(t, s, "log", logtest.Say(fmt.Sprint("new ", i)))
	}
	// What a process that is killed has written stays in the machine's memory.
	crashed := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 2))})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if killed {
		return crashed
	}
	return fs
}

// outcome opens a store and says what became of it: refused with nothing changed, or
// open, with the sessions that are not whole by name.
func outcome(t *testing.T, fs vfs.FS, what string) (damaged []string, refusal error) {
	t.Helper()
	disk := files{t, fs}
	before := disk.snapshot()
	s, err := Open("log", Options{FS: fs})
	if err != nil {
		if strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: refused in more than a line: %v", what, err)
		}
		if after := disk.snapshot(); !maps.Equal(before, after) {
			t.Errorf("%s: refused, and the files changed: %v, then %v", what, slices.Sorted(maps.Keys(before)), slices.Sorted(maps.Keys(after)))
		}
		return nil, err
	}
	for _, id := range []string{"table", "values", "log"} {
		events, err := logtest.Collect(s.Read(t.Context(), id, 1, 0))
		if err == nil {
			err = s.Verify(t.Context(), id)
		}
		corrupt, ok := errors.AsType[*eventlog.CorruptError](err)
		switch {
		case err == nil && len(events) == 20:
		case ok && corrupt.Session == id:
			damaged = append(damaged, id)
		default:
			t.Errorf("%s: session %s has %d events, %v", what, id, len(events), err)
		}
	}
	if err := errors.Join(s.Healthy(), s.Close()); err != nil {
		t.Errorf("%s: %v", what, err)
	}
	return damaged, nil
}

// TestLostFiles takes away, cuts and alters each file that a store left. Nothing is
// ever lost unseen: the store refuses to open and changes nothing, or it says which
// session is damaged, or nothing depended on it.
func TestLostFiles(t *testing.T) {
	for _, killed := range []bool{false, true} {
		fs := left(t, killed)
		l := look{disk: fs, dir: "log/db"}
		manifest, _, err := l.markers()
		if err != nil {
			t.Fatal(err)
		}
		for name, content := range (files{t, fs}).snapshot() {
			faults := map[string]func(files){"is missing": func(f files) { f.remove(name) }}
			if n := len(content); n > 0 {
				for _, to := range []int{0, n / 2, n - 1} {
					faults[fmt.Sprintf("is cut to %d of %d", to, n)] = func(f files) { f.put(name, []byte(content[:to])) }
				}
				for place := range 16 {
					faults[fmt.Sprintf("differs at %d of %d", place*(n-1)/15, n)] = func(f files) {
						altered := []byte(content)
						altered[place*(n-1)/15] ^= 1 << (place % 8)
						f.put(name, altered)
					}
				}
			}
			for fault, do := range faults {
				what := fmt.Sprintf("killed %t, %s %s", killed, name, fault)
				copied, err := cloneOf(fs)
				if err != nil {
					t.Fatal(err)
				}
				do(files{t, copied})
				damaged, refusal := outcome(t, copied, what)
				wantRefusal, wantDamage := expected(name, fault, manifestName(manifest))
				if (refusal != nil) != wantRefusal && wantDamage != "any" {
					t.Errorf("%s: refused with %v", what, refusal)
				}
				if refusal != nil && wantDamage != "any" && !strings.Contains(refusal.Error(), namedIn(name)) {
					t.Errorf("%s: refused without the file's name: %v", what, refusal)
				}
				if len(damaged) > 0 && wantDamage == "" {
					t.Errorf("%s: sessions %v are damaged", what, damaged)
				}
				// It is as it was once the file is back.
				if refusal != nil {
					files{t, copied}.put(name, []byte(content))
					if damaged, again := outcome(t, copied, what+", put back"); again != nil || len(damaged) > 0 {
						t.Errorf("%s, and put back: %v, %v", what, again, damaged)
					}
				}
			}
		}
	}
}

// expected says what becomes of a store with a fault in a file.
func expected(name, fault, manifest string) (refused bool, damage string) {
	base := strings.TrimPrefix(name, "db/")
	isLog, _, _ := kindOf(base)
	whole := fault == "is missing" || strings.HasPrefix(fault, "is cut")
	switch {
	case strings.HasSuffix(name, tableSuffix):
		return whole, "table"
	case strings.HasSuffix(name, blobSuffix):
		return false, "values"
	case name == formatFile:
		return true, ""
	case base == manifest, strings.HasPrefix(base, "marker."):
		return true, ""
	case isLog:
		// Beyond what was acknowledged, a log file may hold anything.
		return true, "any"
	}
	return false, "" // the inventory and the options are rebuilt, an older manifest is not needed
}

// namedIn is what a refusal calls a file.
func namedIn(name string) string {
	for _, marker := range []string{manifestMarker, formatMarker} {
		if strings.HasPrefix(name, "db/"+marker) {
			return "db/" + marker
		}
	}
	if name == formatFile {
		return "log" // the directory: it may be something else
	}
	return name
}

// TestLostLogIsNoticed is the loss that Pebble cannot see.
func TestLostLogIsNoticed(t *testing.T) {
	for what, fault := range map[string]func(disk files, name string, content []byte){
		"is missing":               func(disk files, name string, _ []byte) { disk.remove(name) },
		"is cut off after":         func(disk files, name string, content []byte) { disk.put(name, content[:len(content)-200]) },
		"are not what was written": func(disk files, name string, content []byte) { content[len(content)-200] ^= 1; disk.put(name, content) },
		"are not what was written\x00": func(disk files, name string, content []byte) {
			clear(content[len(content)/2:])
			disk.put(name, content)
		},
	} {
		fs := left(t, true)
		disk := files{t, fs}
		logs := disk.list(".log")
		name := "db/" + logs[len(logs)-1]
		fault(disk, name, bytes.Clone(disk.get(name)))
		_, err := Open("log", Options{FS: fs})
		missing, ok := errors.AsType[*MissingError](err)
		if !ok || len(missing.Missing) != 1 || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), strings.TrimRight(what, "\x00")) {
			t.Errorf("%s: %v", what, err)
		}
		// Whoever has nothing better takes what there is.
		disk.remove(inventoryFile)
		s := openMem(t, fs)
		if err := errors.Join(s.Verify(t.Context(), "table"), s.Verify(t.Context(), "values"), s.Close()); err != nil {
			t.Errorf("%s: without an inventory: %v", what, err)
		}
	}
}

// The manifest may have grown, or another have come, after the inventory was last written. It says itself
// then whether a log that the inventory knows of must be there.
func TestLostLogIsNoticedWhereTheManifestHasGrown(t *testing.T) {
	for what, manifest := range map[string]func(look, extent) extent{
		"it has grown": func(l look, e extent) extent {
			length, sum, err := l.sum(manifestName(e.number), e.length-1)
			if err != nil {
				t.Fatal(err)
			}
			return extent{e.number, length, sum}
		},
		"another came": func(_ look, e extent) extent { return extent{number: e.number - 1} },
	} {
		for fault, do := range map[string]func(disk files, name string){
			"":           func(files, string) {},
			"is missing": func(disk files, name string) { disk.remove(name) },
			"is cut off": func(disk files, name string) { disk.put(name, disk.get(name)[:200]) },
		} {
			fs := left(t, true)
			disk := files{t, fs}
			logs := disk.list(".log")
			known, _, _, err := readInventory(fs, "log")
			if err != nil {
				t.Fatal(err)
			}
			known.manifest = manifest(look{disk: fs, dir: "log/db"}, known.manifest)
			known.logs[1] = extent{1, 7, 7} // it is in tables since, and was removed
			slot := make([]byte, slotBytes)
			copy(slot, known.encode())
			disk.put(inventoryFile, slot)
			do(disk, "db/"+logs[len(logs)-1])
			damaged, refusal := outcome(t, fs, what+" "+fault)
			if missing, ok := errors.AsType[*MissingError](refusal); ok != (fault != "") || len(damaged) > 0 || ok && (len(missing.Missing) != 1 || !strings.Contains(refusal.Error(), fault)) {
				t.Errorf("%s, and a log %s: %v, %v", what, fault, refusal, damaged)
			}
		}
	}
}

// TestLostDatabase is a whole directory that is gone, next to the inventory that names it.
func TestLostDatabase(t *testing.T) {
	for _, withInventory := range []bool{true, false} {
		fs := left(t, false)
		if err := fs.RemoveAll("log/db"); err != nil {
			t.Fatal(err)
		}
		if !withInventory {
			(files{t, fs}).remove(inventoryFile)
		}
		if _, refusal := outcome(t, fs, "no database"); refusal == nil || !strings.Contains(refusal.Error(), "the directory db is missing") {
			t.Errorf("with an inventory %t: %v", withInventory, refusal)
		}
		if !withInventory {
			continue
		}
		// Nor is the directory taken for an empty one.
		(files{t, fs}).remove(formatFile)
		if _, refusal := outcome(t, fs, "no database and no format"); refusal == nil || !strings.Contains(refusal.Error(), "FORMAT is missing") {
			t.Errorf("without a format: %v", refusal)
		}
	}
}

// TestLostFormatAndInventory leaves nothing that says what the database is of.
func TestLostFormatAndInventory(t *testing.T) {
	fs := left(t, true)
	(files{t, fs}).remove(formatFile)
	(files{t, fs}).remove(inventoryFile)
	if _, refusal := outcome(t, fs, "neither"); refusal == nil || !strings.Contains(refusal.Error(), "contextd repair --data-dir log --dry-run") {
		t.Errorf("without format and inventory: %v", refusal)
	}
}

// A store of a program that kept no inventory opens, and one is made.
func TestStoreWithoutInventory(t *testing.T) {
	fs := left(t, true)
	(files{t, fs}).remove(inventoryFile)
	if damaged, refusal := outcome(t, fs, "no inventory"); refusal != nil || len(damaged) > 0 {
		t.Errorf("%v, %v", refusal, damaged)
	}
	if known, _, valid, err := readInventory(fs, "log"); err != nil || !valid || known.manifest.number == 0 {
		t.Errorf("the inventory made is %+v, %t, %v", known, valid, err)
	}
}
