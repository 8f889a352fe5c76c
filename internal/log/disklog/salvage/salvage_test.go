package salvage

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// database is a database in memory with keys in tables, files of values and the log, and what it holds.
type database struct {
	fs   vfs.FS
	want map[string]string
}

func fill(t *testing.T) database {
	t.Helper()
	fs := vfs.NewCrashableMem()
	o := &pebble.Options{FS: fs, FormatMajorVersion: pebble.FormatValueSeparation, Logger: silent{}}
	o.Experimental.ValueSeparationPolicy = func() pebble.ValueSeparationPolicy {
		return pebble.ValueSeparationPolicy{Enabled: true, MinimumSize: 512, MaxBlobReferenceDepth: 10}
	}
	db, err := pebble.Open("db", o)
	if err != nil {
		t.Fatal(err)
	}
	d := database{want: map[string]string{}}
	set := func(key, value string) {
		t.Helper()
		d.want[key] = value
		if err := db.Set([]byte(key), []byte(value), pebble.Sync); err != nil {
			t.Fatal(err)
		}
	}
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range 400 {
		set(fmt.Sprintf("near-%03d", i), fmt.Sprint("old ", i))
		set(fmt.Sprintf("apart-%03d", i), strings.Repeat(fmt.Sprint("value ", i, " "), 200))
		set(fmt.Sprintf("gone-%03d", i), "gone")
	}
	do(db.Flush())
	for i := range 200 {
		set(fmt.Sprintf("near-%03d", i), fmt.Sprint("new ", i))
	}
	do(db.DeleteRange([]byte("gone-100"), []byte("gone-400"), pebble.Sync))
	do(db.Flush())
	for i := range 400 {
		if i >= 50 {
			delete(d.want, fmt.Sprintf("gone-%03d", i))
		}
		set(fmt.Sprintf("log-%03d", i), strings.Repeat(fmt.Sprint("logged ", i), 40))
	}
	for i := range 50 {
		do(db.Delete([]byte(fmt.Sprintf("gone-%03d", i+50)), pebble.Sync))
	}
	crashed := fs.CrashClone(vfs.CrashCloneCfg{})
	do(db.Close())
	d.fs = crashed
	return d
}

// raced says that the race detector is on: Pebble then writes checksums that cannot be searched for.
var raced bool

func searchable(t *testing.T) {
	t.Helper()
	if raced {
		t.Skip("SKIPPED: Pebble writes other checksums under the race detector")
	}
}

type silent struct{}

func (silent) Infof(string, ...any)  {}
func (silent) Errorf(string, ...any) {}
func (silent) Fatalf(format string, args ...any) {
	panic(fmt.Sprintf(format, args...))
}

// salvaged is what is read of a database's files, each for itself, and what is damaged of them.
func (d database) salvaged(t *testing.T, alter func(name string, content []byte) []byte) (got map[string]string, lost map[string][]Span) {
	t.Helper()
	names, err := d.fs.List("db")
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	fs := vfs.NewMem()
	newest, deleted := map[string]Entry{}, []Entry{}
	visit := func(e Entry) error {
		e.Key, e.End, e.Value = bytes.Clone(e.Key), bytes.Clone(e.End), bytes.Clone(e.Value)
		switch old, found := newest[string(e.Key)]; {
		case e.End != nil:
			deleted = append(deleted, e)
		case !found || e.Seq > old.Seq:
			newest[string(e.Key)] = e
		}
		return nil
	}
	values, lost := NewValues(fs), map[string][]Span{}
	for _, name := range names {
		content, err := ReadFile(d.fs, "db/"+name)
		if err != nil {
			t.Fatal(err)
		}
		content = alter(name, content)
		var spans []Span
		switch {
		case strings.HasSuffix(name, ".sst"):
			spans, _, err = Table(content, visit)
		case strings.HasSuffix(name, ".log"):
			var number uint64
			if _, err := fmt.Sscanf(name, "%d.log", &number); err != nil {
				t.Fatal(err)
			}
			spans, err = Log(content, number, visit)
		case strings.HasSuffix(name, ".blob"):
			f, createErr := fs.Create(name, vfs.WriteCategoryUnspecified)
			if createErr != nil {
				t.Fatal(createErr)
			}
			if _, err := f.Write(content); err != nil {
				t.Fatal(err)
			}
			spans, err = values.Add(name)
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if len(spans) > 0 {
			lost[name] = spans
		}
	}
	got = map[string]string{}
	for key, e := range newest {
		if e.Deleted || slices.ContainsFunc(deleted, func(d Entry) bool { return d.Seq > e.Seq && key >= string(d.Key) && key < string(d.End) }) {
			continue
		}
		if e.Apart > 0 {
			if e.Value, err = values.Find(e.Apart, func(v []byte) bool { return string(v) == d.want[key] }); err != nil {
				t.Fatal(err)
			}
			if e.Value == nil {
				continue
			}
		}
		got[key] = string(e.Value)
	}
	return got, lost
}

// TestAllIsSalvaged reads a database without its manifest, with all indexes and footers, and with none.
func TestAllIsSalvaged(t *testing.T) {
	searchable(t)
	d := fill(t)
	for what, cut := range map[string]int{"whole": 0, "without footers": 20} {
		got, lost := d.salvaged(t, func(name string, content []byte) []byte {
			if strings.HasSuffix(name, ".sst") || strings.HasSuffix(name, ".blob") {
				return content[:len(content)-cut]
			}
			return content
		})
		if cut == 0 && len(lost) > 0 || cut > 0 && len(lost) < 2 {
			t.Errorf("%s: lost %v", what, lost)
		}
		for key, value := range d.want {
			if got[key] != value {
				t.Errorf("%s: %s is %.20q", what, key, got[key])
			}
		}
		if len(got) != len(d.want) {
			t.Errorf("%s: %d keys of %d", what, len(got), len(d.want))
		}
	}
}

// TestDamageIsKeptToItsBlock flips a byte at many places: what is in other blocks is read, and the
// damage is named.
func TestDamageIsKeptToItsBlock(t *testing.T) {
	searchable(t)
	d := fill(t)
	names, err := d.fs.List("db")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if !strings.HasSuffix(name, ".sst") && !strings.HasSuffix(name, ".blob") && !strings.HasSuffix(name, ".log") {
			continue
		}
		for place := range 12 {
			got, lost := d.salvaged(t, func(other string, content []byte) []byte {
				if other == name && len(content) > 0 {
					content[place*(len(content)-1)/11] ^= 1 << (place % 8)
				}
				return content
			})
			wrong := 0
			for key, value := range got {
				// Of a key whose newest version is lost there may be the one before it.
				if want := d.want[key]; want != value && !strings.HasPrefix(value, "old ") && value != "gone" {
					t.Errorf("%s at place %d: %s is %.20q", name, place, key, value)
				}
			}
			for key := range d.want {
				if _, found := got[key]; !found {
					wrong++
				}
			}
			if wrong > len(d.want)/3 {
				t.Errorf("%s at place %d: %d of %d keys are lost", name, place, wrong, len(d.want))
			}
			if wrong > 0 && len(lost[name]) == 0 && !strings.HasSuffix(name, ".log") {
				t.Errorf("%s at place %d: %d keys are lost, and no span is named", name, place, wrong)
			}
		}
	}
}

func FuzzLog(f *testing.F) {
	chunk := []byte{0, 0, 0, 0, 2, 0, 9, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 'a', 'b'}
	f.Add(chunk)
	f.Fuzz(func(t *testing.T, content []byte) {
		if len(content) >= shortChunk {
			// A checksum that fits, so that what follows it is looked at.
			size := min(len(content), longChunk+int(binary.LittleEndian.Uint16(content[4:])))
			c := crc32.Checksum(content[6:size], castagnoli)
			binary.LittleEndian.PutUint32(content, (c>>15|c<<17)+checksumDelta)
		}
		if _, err := Log(content, 1, func(Entry) error { return nil }); err != nil {
			t.Fatal(err)
		}
	})
}

// TestGapsHaveWhatIsLost cuts and alters a table: each key that is not found any more is in a gap.
func TestGapsHaveWhatIsLost(t *testing.T) {
	searchable(t)
	d := fill(t)
	names, err := d.fs.List("db")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if !strings.HasSuffix(name, ".sst") {
			continue
		}
		content, err := ReadFile(d.fs, "db/"+name)
		if err != nil {
			t.Fatal(err)
		}
		keys := func(content []byte) (found map[string]bool, gaps []Gap) {
			found = map[string]bool{}
			_, gaps, err := Table(content, func(e Entry) error {
				if e.End == nil {
					found[string(e.Key)] = true
				}
				return nil
			})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			return found, gaps
		}
		had, gaps := keys(content)
		if len(gaps) > 0 {
			t.Errorf("%s is whole and has gaps: %q", name, gaps)
		}
		check := func(what string, damaged []byte) {
			found, gaps := keys(damaged)
			for key := range had {
				if !found[key] && !slices.ContainsFunc(gaps, func(g Gap) bool {
					return key > string(g.After) && (g.Before == nil || key < string(g.Before))
				}) {
					t.Fatalf("%s %s: %s is lost and in none of the gaps %q", name, what, key, gaps)
				}
			}
		}
		ends := []int{0}
		for at := range 100 {
			ends = append(ends, at*len(content)/100)
		}
		// After a cut there may be as many bytes after a block as the footer has.
		for at := 0; at < len(content); {
			size := blockAt(content[at:], len(content)-at)
			if size == 0 {
				break
			}
			at += size
			ends = append(ends, min(at, len(content)), min(at+tableFooter, len(content)))
		}
		for _, end := range ends {
			check(fmt.Sprintf("cut to %d of %d", end, len(content)), content[:end])
			altered := bytes.Clone(content)
			for i := end; i < min(end+20, len(content)); i++ {
				altered[i] ^= 0x55
			}
			check(fmt.Sprintf("altered at %d of %d", end, len(content)), altered)
		}
	}
}
