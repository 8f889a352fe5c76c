package assemble

import "slices"

// recent is a small LRU cache. It counts the bytes that callers declare for its values.
type recent[V any] struct {
	limit   int
	entries []recentEntry[V] // newest last
}

type recentEntry[V any] struct {
	key   string
	value V
	bytes int
}

// get returns the value of a key and makes it the newest.
func (r *recent[V]) get(key string) (V, bool) {
	i := slices.IndexFunc(r.entries, func(e recentEntry[V]) bool { return e.key == key })
	if i < 0 {
		var none V
		return none, false
	}
	e := r.entries[i]
	r.entries = append(slices.Delete(r.entries, i, i+1), e)
	return e.value, true
}

// put stores a value as the newest, and evicts the oldest if there are more than limit.
func (r *recent[V]) put(key string, value V, bytes int) {
	r.entries = slices.DeleteFunc(r.entries, func(e recentEntry[V]) bool { return e.key == key })
	r.entries = append(r.entries, recentEntry[V]{key, value, bytes})
	r.keep(r.limit)
}

// keep evicts all entries but the newest n.
func (r *recent[V]) keep(n int) {
	r.entries = slices.Delete(r.entries, 0, max(len(r.entries)-n, 0))
}

func (r *recent[V]) bytes() (n int) {
	for i := range r.entries {
		n += r.entries[i].bytes + len(r.entries[i].key)
	}
	return n
}
