package client

import (
	"container/list"
	"sync"
)

// recent is an LRU cache. It may be used by several goroutines.
type recent[K comparable, V any] struct {
	most int

	mu    sync.Mutex
	byKey map[K]*list.Element
	order list.List // of entry[K, V], the newest first
}

type entry[K comparable, V any] struct {
	key   K
	value V
}

func newRecent[K comparable, V any](most int) *recent[K, V] {
	return &recent[K, V]{most: most, byKey: map[K]*list.Element{}}
}

// get returns the value of a key, or the zero value.
func (r *recent[K, V]) get(key K) (value V) {
	r.update(key, func(old V, known bool) (V, bool) {
		value = old
		return old, known
	})
	return value
}

// update sets a key's value to what next returns, or removes it if that returns false.
func (r *recent[K, V]) update(key K, next func(old V, known bool) (V, bool)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, known := r.byKey[key]
	var old V
	if known {
		old = at.Value.(entry[K, V]).value
	}
	value, keep := next(old, known)
	if known {
		r.order.Remove(at)
		delete(r.byKey, key)
	}
	if !keep {
		return
	}
	r.byKey[key] = r.order.PushFront(entry[K, V]{key, value})
	for r.order.Len() > r.most {
		oldest := r.order.Remove(r.order.Back()).(entry[K, V])
		delete(r.byKey, oldest.key)
	}
}

// forget removes the values of all keys for which gone is true.
func (r *recent[K, V]) forget(gone func(K) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, at := range r.byKey {
		if gone(key) {
			r.order.Remove(at)
			delete(r.byKey, key)
		}
	}
}
