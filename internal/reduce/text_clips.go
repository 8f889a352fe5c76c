package reduce

import (
	"cmp"
	"slices"

	eventlog "github.com/contextd/contextd/internal/log"
)

// clipLimits finds the tightest clip at an event quickly, because the last resort may make a clip for each message of
// a long log.
type clipLimits struct {
	few []Clip
	// starts are the events after which the limit changes, ascending. limits has the limit from each of them to the
	// next; 0 is none.
	starts []eventlog.Seq
	limits []uint64
}

// fewClips is the most clips that are compared one by one, which allocates nothing.
const fewClips = 16

func limitsOf(clips []Clip) clipLimits {
	if len(clips) <= fewClips {
		return clipLimits{few: clips}
	}
	var l clipLimits
	for _, c := range clips {
		if c.From < c.Through {
			l.starts = append(l.starts, c.From, c.Through)
		}
	}
	slices.Sort(l.starts)
	l.starts = slices.Compact(l.starts)
	l.limits = make([]uint64, len(l.starts))
	// The tightest come first, so that each stretch is set once. free is a union-find over the
	// stretches: it leads from each to the first at or after it that is not set.
	free := make([]int, len(l.starts)+1)
	for i := range free {
		free[i] = i
	}
	next := func(i int) int {
		for free[i] != i {
			free[i] = free[free[i]]
			i = free[i]
		}
		return i
	}
	sorted := slices.SortedFunc(slices.Values(clips), func(a, b Clip) int { return cmp.Compare(a.Tokens, b.Tokens) })
	for _, c := range sorted {
		i, _ := slices.BinarySearch(l.starts, c.From)
		for i = next(i); i < len(l.starts) && l.starts[i] < c.Through; i = next(i) {
			l.limits[i], free[i] = c.Tokens, i+1
		}
	}
	return l
}

// at returns the tightest limit at an event; 0 is none.
func (l clipLimits) at(seq eventlog.Seq) uint64 {
	if l.starts == nil {
		return tightest(0, l.few, seq)
	}
	i, _ := slices.BinarySearch(l.starts, seq) // the stretch before begins before the event
	if i == 0 {
		return 0
	}
	return l.limits[i-1]
}

// clipsOf returns clips of the texts of one group. They cover no other event, because an event in between may have
// the text of another group.
func clipsOf(g *Group, limit uint64) []Clip {
	var clips []Clip
	for b := range g.texts() {
		if last := len(clips) - 1; last >= 0 && b.Seq-clips[last].Through <= 1 {
			clips[last].Through = b.Seq
		} else {
			clips = append(clips, Clip{b.Seq - 1, b.Seq, limit})
		}
	}
	return clips
}

// clipLevel returns the size to which each text of some groups must be cut so that the groups together, including the
// media that they show, take limit tokens.
func clipLevel(groups []*Group, media clipLimits, limit uint64) uint64 {
	var texts []uint64
	var rest uint64
	for _, g := range groups {
		rest += g.shownTokens(media)
		for _, tokens := range g.textTokens() {
			texts = append(texts, tokens)
			rest -= tokens
		}
	}
	room := limit - min(rest, limit)
	slices.Sort(texts)
	for i, tokens := range texts {
		level := room / uint64(len(texts)-i)
		if tokens > level {
			return level
		}
		room -= tokens
	}
	return limit
}
