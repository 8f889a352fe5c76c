package extractive

import (
	"container/heap"
	"sort"
)

// pick returns, within limit, the excerpts with the most worth for their cost. A name that a picked excerpt already
// shows adds little to the worth of others.
func (s *span) pick(limit uint64, count func(string) uint64) string {
	queue := candidates{}
	for _, e := range s.excerpts {
		if e.score = s.score(e); e.score > 0 {
			queue = append(queue, e)
		}
	}
	heap.Init(&queue)
	var picked []*excerpt
	open := map[source]bool{}
	var used uint64
	for len(queue) > 0 && used < limit {
		e := queue[0]
		if score := s.score(e); score < e.score { // another excerpt was picked since then
			if e.score = score; score > 0 {
				heap.Fix(&queue, 0)
			} else {
				heap.Pop(&queue)
			}
			continue
		}
		heap.Pop(&queue)
		cost := count(e.text()) + 1
		if !open[e.from] && e.from.seq != 0 {
			cost += count(e.from.heading()) + 1
		}
		if used+cost > limit {
			if used+limit/32 >= limit {
				break // nearly full is good enough
			}
			continue
		}
		used += cost
		open[e.from] = true
		picked = append(picked, e)
		for _, n := range e.names {
			s.names[n].shown++
		}
	}
	// The whole may count a little more than its parts.
	fit := sort.Search(len(picked), func(n int) bool { return count(compose(picked[:n+1])) > limit })
	return compose(picked[:fit])
}

// candidates is a heap of excerpts, the best first; of equal ones first the newest, then the one that comes first in
// its text.
type candidates []*excerpt

func (c candidates) Len() int { return len(c) }
func (c candidates) Less(i, j int) bool {
	a, b := c[i], c[j]
	if a.score != b.score {
		return a.score > b.score
	}
	if order := a.from.compare(b.from); order != 0 {
		return order > 0
	}
	return a.start < b.start
}
func (c candidates) Swap(i, j int) { c[i], c[j] = c[j], c[i] }
func (c *candidates) Push(x any)   { *c = append(*c, x.(*excerpt)) }
func (c *candidates) Pop() any {
	old := *c
	e := old[len(old)-1]
	*c = old[:len(old)-1]
	return e
}
