package disklog

import (
	"strings"
	"testing"
	"time"
)

// TestRepairOfTablesThatNothingNames loses a table with the manifest that named it.
func TestRepairOfTablesThatNothingNames(t *testing.T) {
	searchable(t)
	for _, lose := range []func(files, string){
		func(f files, name string) { f.remove(name) },
		func(f files, name string) { f.put(name, nil) },
	} {
		fs, had := fillForRepair(t, nil)
		all := files{t, fs}.list(tableSuffix)
		for _, table := range all {
			copied, err := cloneOf(fs)
			if err != nil {
				t.Fatal(err)
			}
			disk := files{t, copied}
			for name, content := range disk.snapshot() {
				if strings.HasPrefix(name, "db/MANIFEST-") {
					disk.put(name, []byte(content[:len(content)/2]))
				}
			}
			lose(disk, "db/"+table)
			r, err := RepairDir(t.Context(), "log", Options{FS: copied}, false, time.Unix(1e9, 0))
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(strings.Join(r.Faults, "\n"), "tables that are missing are not known") {
				t.Errorf("%s: the faults are %q", table, r.Faults)
			}
			if r.Whole+len(r.Losses) < len(had) && !r.Unnamed {
				t.Errorf("%s: %d sessions of %d are left, and the report is %+v", table, r.Whole, len(had), r)
			}
		}
	}
}

// TestRepairOfTheFormatAlone: where nothing but the format file is wrong, the report alarms with nothing else.
func TestRepairOfTheFormatAlone(t *testing.T) {
	for want, content := range map[string][]byte{"FORMAT is missing": nil, "FORMAT is damaged": []byte(formatMagic + "\n")} {
		fs, had := fillForRepair(t, nil)
		if content == nil {
			files{t, fs}.remove(formatFile)
		} else {
			files{t, fs}.put(formatFile, content)
		}
		r := repaired(t, fs, nil, had, want)
		if len(r.Faults) != 1 || r.Faults[0] != want || len(r.Losses) > 0 || r.Unnamed || r.Whole != len(had) {
			t.Errorf("%s: %+v", want, r)
		}
	}
}
