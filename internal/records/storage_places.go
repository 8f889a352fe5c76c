package records

import (
	"math"
	"slices"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/projection"
	"github.com/contextd/contextd/internal/reduce"
	storagev1 "github.com/contextd/contextd/proto/contextd/storage/v1"
)

// Places in the log are delta-encoded, since small numbers take fewer bytes and these lists make up most of
// a record.

func storeRanges(all eventlog.Ranges) []uint64 {
	out := make([]uint64, 0, 2*len(all))
	before := eventlog.Seq(0)
	for _, r := range all {
		out = append(out, uint64(r.From-before), uint64(r.To-r.From))
		before = r.To
	}
	return out
}

func storePlaces(all []eventlog.Place) []uint64 {
	out := make([]uint64, 0, 2*len(all))
	before := eventlog.Seq(0)
	for _, p := range all {
		out = append(out, uint64(p.Seq-before), uint64(p.Block))
		before = p.Seq
	}
	return out
}

func storeSeqs(all []eventlog.Seq) []uint64 {
	out := make([]uint64, len(all))
	for i, s := range all {
		out[i] = uint64(s)
	}
	return out
}

func storePointers(all Pointers) (numbers []uint64, edits []*storagev1.Edit) {
	type edit struct {
		kind            reduce.EditKind
		reducer, reason string
	}
	index := map[edit]int{}
	numbers = make([]uint64, 0, 4*len(all))
	before := eventlog.Seq(0)
	for _, p := range all {
		key := edit{p.Kind, p.Reducer, p.Reason}
		i, ok := index[key]
		if !ok {
			i = len(edits)
			index[key] = i
			edits = append(edits, &storagev1.Edit{Kind: uint32(p.Kind), Reducer: p.Reducer, Reason: p.Reason})
		}
		numbers = append(numbers, uint64(p.Seq-before), uint64(p.Block), p.Reclaimed, uint64(i))
		before = p.Seq
	}
	return numbers, edits
}

// reader decodes lists of places; err is the first error.
type reader struct {
	what string
	err  error
}

// entries yields the entries of a list, each of them that many numbers.
func (r *reader) entries(numbers []uint64, each int) func(yield func([]uint64) bool) {
	if len(numbers)%each != 0 {
		r.corrupt("a list of places ends early")
		return func(func([]uint64) bool) {}
	}
	return slices.Chunk(numbers, each)
}

func (r *reader) corrupt(reason string) {
	if r.err == nil {
		r.err = &eventlog.CorruptError{What: r.what, Reason: reason}
	}
}

func (r *reader) block(n uint64) int {
	if n > math.MaxInt32 {
		r.corrupt("a block has no such number")
		return 0
	}
	return int(n)
}

func (r *reader) ranges(numbers []uint64) eventlog.Ranges {
	var out eventlog.Ranges
	if len(numbers) == 0 {
		return nil // the loop below would allocate
	}
	before := eventlog.Seq(0)
	for n := range r.entries(numbers, 2) {
		from := before + eventlog.Seq(n[0])
		before = from + eventlog.Seq(n[1])
		if from > before {
			r.corrupt("a run of events ends before it begins")
			return nil
		}
		out = append(out, eventlog.Range{From: from, To: before})
	}
	return out
}

func (r *reader) places(numbers []uint64) []eventlog.Place {
	var out []eventlog.Place
	before := eventlog.Seq(0)
	for n := range r.entries(numbers, 2) {
		before += eventlog.Seq(n[0])
		out = append(out, eventlog.Place{Seq: before, Block: r.block(n[1])})
	}
	return out
}

func (r *reader) pointers(numbers []uint64, edits []*storagev1.Edit) Pointers {
	var out Pointers
	before := eventlog.Seq(0)
	for n := range r.entries(numbers, 4) {
		if n[3] >= uint64(len(edits)) {
			r.corrupt("a pointer names no edit")
			return nil
		}
		before += eventlog.Seq(n[0])
		e := edits[n[3]]
		out = append(out, Pointer{
			Seq: before, Block: r.block(n[1]), Kind: reduce.EditKind(e.GetKind()), Reducer: e.GetReducer(), Reason: e.GetReason(), Reclaimed: n[2],
		})
	}
	return out
}

func storeState(s projection.State) *storagev1.ProjectionState {
	return &storagev1.ProjectionState{
		Redacted: storePlaces(s.Redacted), Restored: storePlaces(s.Restored), Clipped: storePlaces(s.Clipped),
		Dropped: storeSeqs(s.Dropped), BatchTurn: s.BatchTurn,
	}
}

func (r *reader) state(m *storagev1.ProjectionState) projection.State {
	out := projection.State{
		Redacted: r.places(m.GetRedacted()), Restored: r.places(m.GetRestored()), Clipped: r.places(m.GetClipped()),
		BatchTurn: m.GetBatchTurn(),
	}
	for _, s := range m.GetDropped() {
		out.Dropped = append(out.Dropped, eventlog.Seq(s))
	}
	return out
}
