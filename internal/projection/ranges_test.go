package projection

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	eventlog "github.com/contextd/contextd/internal/log"
)

func TestRanges(t *testing.T) {
	for _, c := range []struct {
		seqs []eventlog.Seq
		want []Range
	}{
		{nil, nil},
		{[]eventlog.Seq{7}, []Range{{7, 7}}},
		{[]eventlog.Seq{1, 2, 3}, []Range{{1, 3}}},
		{[]eventlog.Seq{3, 1, 2, 3, 1}, []Range{{1, 3}}},
		{[]eventlog.Seq{9, 1, 3, 4, 8}, []Range{{1, 1}, {3, 4}, {8, 9}}},
	} {
		if got := ranges(slices.Clone(c.seqs)); !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.seqs, got, c.want)
		}
	}
	if got := Seqs([]Range{{1, 1}, {3, 5}}); !slices.Equal(got, []eventlog.Seq{1, 3, 4, 5}) {
		t.Errorf("%v", got)
	}
	if got := Seqs(nil); got != nil {
		t.Errorf("of none: %v", got)
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
		var list []eventlog.Seq
		runs := 0
		for s := 1; s < len(in); s++ {
			if in[s] {
				list = append(list, eventlog.Seq(s))
			}
			if in[s] && !in[s-1] {
				runs++
			}
		}
		got := ranges(seqs)
		if len(got) != runs || !slices.Equal(Seqs(got), list) {
			t.Errorf("%v became %v", list, got)
		}
	})
}

func TestWithoutAgainstASet(t *testing.T) {
	draw := func(t *rapid.T, name string) ([]Range, map[eventlog.Seq]bool) {
		in := map[eventlog.Seq]bool{}
		var seqs []eventlog.Seq
		for range rapid.IntRange(0, 20).Draw(t, name) {
			seq := eventlog.Seq(rapid.Uint64Range(1, 30).Draw(t, "seq"))
			in[seq] = true
			seqs = append(seqs, seq)
		}
		return ranges(seqs), in
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
		if got := without(a, b); !slices.Equal(Seqs(got), want) || !slices.Equal(got, ranges(Seqs(got))) {
			t.Errorf("%v without %v is %v", a, b, got)
		}
		if !slices.Equal(a, before) {
			t.Errorf("%v was changed to %v", before, a)
		}
	})
}
