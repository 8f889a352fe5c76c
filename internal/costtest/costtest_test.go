package costtest

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAFileIsReadAsItIsWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "costs.txt")
	want := map[string]Cost{"one": {1, 2, 3}, "two, with a comma": {4, 5, 0}}
	if err := write(file, want); err != nil {
		t.Fatal(err)
	}
	got, err := read(file)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestAllocationsAreCounted(t *testing.T) {
	var kept [][]byte
	got := measure(t, Operation{Start: func(testing.TB) func() {
		return func() {
			kept = nil
			for range 7 {
				kept = append(kept, make([]byte, 1<<10))
			}
		}
	}})
	if got.Allocations < 7 || got.Allocations > 12 || got.Bytes < 7<<10 || got.Bytes > 8<<10 {
		t.Errorf("a run costs %+v", got)
	}
}
