package server

import (
	"container/list"
	"sync"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// cachedSessions bounds how many sessions' settings are kept decoded.
const cachedSessions = 4096

// settings are what every call on a session needs to know of it. They never
// change while the session lives.
type settings struct {
	policy *contextdv1.Policy
	budget *contextdv1.Budget
	// tokenizer counts the session's events as they are appended.
	tokenizer string
}

// sessionCache keeps the settings of the sessions used last. The zero value with
// a limit is ready.
type sessionCache struct {
	mu    sync.Mutex
	limit int
	byID  map[string]*list.Element
	order list.List // most recently used first
	// forgotten counts calls of forget: what was read from the store before one
	// of them may be of a session that is gone.
	forgotten uint64
}

type cachedSession struct {
	id       string
	settings settings
}

func (c *sessionCache) get(id string) (settings, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.byID[id]
	if !ok {
		return settings{}, false
	}
	c.order.MoveToFront(e)
	return e.Value.(cachedSession).settings, true
}

// generation is what put must be told; it is read before the session is.
func (c *sessionCache) generation() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.forgotten
}

// put keeps the settings unless any session was forgotten since.
func (c *sessionCache) put(since uint64, id string, s settings) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if since != c.forgotten {
		return
	}
	if e, ok := c.byID[id]; ok {
		e.Value = cachedSession{id, s}
		c.order.MoveToFront(e)
		return
	}
	if c.byID == nil {
		c.byID = map[string]*list.Element{}
	}
	c.byID[id] = c.order.PushFront(cachedSession{id, s})
	if c.order.Len() > c.limit {
		oldest := c.order.Back()
		c.order.Remove(oldest)
		delete(c.byID, oldest.Value.(cachedSession).id)
	}
}

func (c *sessionCache) forget(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forgotten++
	if e, ok := c.byID[id]; ok {
		c.order.Remove(e)
		delete(c.byID, id)
	}
}
