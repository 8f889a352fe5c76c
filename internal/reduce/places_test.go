package reduce

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	eventlog "github.com/contextd/contextd/internal/log"
)

// TestPlacesAreWhatWasPutInThem: each set has what it was made with, whatever was made of it later.
func TestPlacesAreWhatWasPutInThem(t *testing.T) {
	place := rapid.Custom(func(t *rapid.T) eventlog.Place {
		return eventlog.Place{Seq: eventlog.Seq(rapid.IntRange(1, 100).Draw(t, "seq")), Block: rapid.IntRange(0, 1).Draw(t, "block")}
	})
	rapid.Check(t, func(t *rapid.T) {
		sets, want := []places{nil}, []map[eventlog.Place]bool{{}}
		for range rapid.IntRange(1, 60).Draw(t, "sets") {
			of := rapid.IntRange(0, len(sets)-1).Draw(t, "of")
			more := rapid.SliceOfN(place, 0, 4).Draw(t, "more")
			with := maps.Clone(want[of])
			for _, at := range more {
				with[at] = true
			}
			sets, want = append(sets, sets[of].with(more)), append(want, with)
		}
		for i, set := range sets {
			got := slices.SortedFunc(set.all(), eventlog.Place.Compare)
			if !slices.Equal(got, slices.SortedFunc(maps.Keys(want[i]), eventlog.Place.Compare)) {
				t.Fatalf("set %d has %v instead of %v", i, got, want[i])
			}
			for at := range want[i] {
				if !set.has(at) {
					t.Fatalf("set %d is said to be without %v", i, at)
				}
			}
			if len(set) > 8 {
				t.Fatalf("set %d of %d places has %d parts", i, len(want[i]), len(set))
			}
		}
	})
}
