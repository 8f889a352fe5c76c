package log_test

import (
	"cmp"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	eventlog "github.com/contextd/contextd/internal/log"
)

func TestRanges(t *testing.T) {
	for _, c := range []struct {
		seqs []eventlog.Seq
		want eventlog.Ranges
	}{
		{nil, nil},
		{[]eventlog.Seq{7}, eventlog.Ranges{{From: 7, To: 7}}},
		{[]eventlog.Seq{1, 2, 3}, eventlog.Ranges{{From: 1, To: 3}}},
		{[]eventlog.Seq{3, 1, 2, 3, 1}, eventlog.Ranges{{From: 1, To: 3}}},
		{[]eventlog.Seq{9, 1, 3, 4, 8}, eventlog.Ranges{{From: 1, To: 1}, {From: 3, To: 4}, {From: 8, To: 9}}},
	} {
		if got := eventlog.RangesOf(slices.Clone(c.seqs)); !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.seqs, got, c.want)
		}
	}
	if got := (eventlog.Ranges{{From: 1, To: 1}, {From: 3, To: 5}}).Seqs(); !slices.Equal(got, []eventlog.Seq{1, 3, 4, 5}) {
		t.Errorf("%v", got)
	}
	if got := eventlog.Ranges(nil).Seqs(); got != nil {
		t.Errorf("of none: %v", got)
	}
}

func TestPlacesCompare(t *testing.T) {
	in := []eventlog.Place{{}, {Block: 1}, {Seq: 1}, {Seq: 1, Block: 2}, {Seq: 2, Block: 1}}
	for i, p := range in {
		for j, q := range in {
			if got := p.Compare(q); got != cmp.Compare(i, j) {
				t.Errorf("%v with %v: %d", p, q, got)
			}
		}
	}
}

func TestRangesAgainstASet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seqs := rapid.SliceOf(rapid.Custom(func(t *rapid.T) eventlog.Seq {
			return eventlog.Seq(rapid.Uint64Range(1, 40).Draw(t, "seq"))
		})).Draw(t, "seqs")
		var in [42]bool
		for _, s := range seqs {
			in[s] = true
		}
		var list, early []eventlog.Seq
		head := eventlog.Seq(rapid.IntRange(0, len(in)).Draw(t, "head"))
		runs := 0
		for s := 1; s < len(in); s++ {
			if in[s] {
				list = append(list, eventlog.Seq(s))
			}
			if in[s] && eventlog.Seq(s) <= head {
				early = append(early, eventlog.Seq(s))
			}
			if in[s] && !in[s-1] {
				runs++
			}
		}
		got := eventlog.RangesOf(seqs)
		if len(got) != runs || !slices.Equal(got.Seqs(), list) || got.Len() != len(list) {
			t.Errorf("%v became %v, of %d", list, got, got.Len())
		}
		if upTo := append(eventlog.Ranges{{}}, got...).UpTo(head); !slices.Equal(upTo.Seqs(), early) || !slices.Equal(upTo, eventlog.RangesOf(early)) {
			t.Errorf("%v up to %d is %v", got, head, upTo)
		}
		for s := range eventlog.Seq(len(in)) {
			r := got.Around(s)
			if got.Has(s) != in[s] || in[s] != (r.From <= s && s <= r.To && slices.Contains(got, r)) {
				t.Errorf("%v has %d: %t, around it is %v", got, s, got.Has(s), r)
			}
		}
	})
}

func TestWithoutAgainstASet(t *testing.T) {
	draw := func(t *rapid.T, name string) (eventlog.Ranges, map[eventlog.Seq]bool) {
		in := map[eventlog.Seq]bool{}
		var seqs []eventlog.Seq
		for range rapid.IntRange(0, 20).Draw(t, name) {
			seq := eventlog.Seq(rapid.Uint64Range(1, 30).Draw(t, "seq"))
			in[seq] = true
			seqs = append(seqs, seq)
		}
		return eventlog.RangesOf(seqs), in
	}
	rapid.Check(t, func(t *rapid.T) {
		a, inA := draw(t, "a")
		b, inB := draw(t, "b")
		var want []eventlog.Seq
		for s := eventlog.Seq(1); s <= 30; s++ {
			if inA[s] && !inB[s] {
				want = append(want, s)
			}
		}
		before := slices.Clone(a)
		if got := a.Without(b); !slices.Equal(got.Seqs(), want) || !slices.Equal(got, eventlog.RangesOf(got.Seqs())) {
			t.Errorf("%v without %v is %v", a, b, got)
		}
		if !slices.Equal(a, before) {
			t.Errorf("%v was changed to %v", before, a)
		}
	})
}

func TestRangesWith(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seq := rapid.Custom(func(t *rapid.T) eventlog.Seq { return eventlog.Seq(rapid.Uint64Range(1, 30).Draw(t, "seq")) })
		var all eventlog.Ranges
		want := map[eventlog.Seq]bool{}
		for range rapid.IntRange(0, 6).Draw(t, "ranges") {
			from := seq.Draw(t, "from")
			r := eventlog.Range{From: from, To: from + eventlog.Seq(rapid.IntRange(0, 5).Draw(t, "more"))}
			before := slices.Clone(all)
			with := all.With(r)
			if !slices.Equal(all, before) {
				t.Fatalf("With changed %v to %v", before, all)
			}
			all = with
			for s := r.From; s <= r.To; s++ {
				want[s] = true
			}
		}
		if got := slices.Sorted(maps.Keys(want)); !slices.Equal(all, eventlog.RangesOf(got)) {
			t.Fatalf("%v, not those of %v", all, got)
		}
	})
}
