package reduce

import (
	"cmp"
	"slices"

	eventlog "github.com/contextd/contextd/internal/log"
)

// clipLimits finds the tightest of many clips that hold at an event. The last resort may make
// one for each message of a long log.
type clipLimits struct {
	few []Clip
	// starts are the events after which another limit holds, ascending, and limits those from
	// each of them to the next; 0 is none.
	starts []eventlog.Seq
	limits []uint64
}

// fewClips are looked through one by one: that allocates nothing.
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
		if c.From >= c.Through {
			continue
		}
		i, _ := slices.BinarySearch(l.starts, c.From)
		for i = next(i); i < len(l.starts) && l.starts[i] < c.Through; i = next(i) {
			l.limits[i], free[i] = c.Tokens, i+1
		}
	}
	return l
}

// at is the tightest limit at an event; 0 is none.
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

// clipsOf returns clips of the texts of one group. They cover no other event, as an event between may hold
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

// clipLevel is the size to which each text must be cut for the groups, with the media that they show, to take
// limit tokens together.
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
