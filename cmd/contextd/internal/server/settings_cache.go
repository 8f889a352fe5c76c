package server

import (
	"container/list"
	"sync"

	"google.golang.org/protobuf/proto"

	eventlog "github.com/contextd/contextd/internal/log"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// cachedSessions and cachedBytes bound how many sessions' settings are kept decoded, and
// how large they are together.
const (
	cachedSessions = 4096
	cachedBytes    = 8 << 20
)

// settings are the policy, budget and tokenizer of a session. They never change while the session exists.
type settings struct {
	policy *contextdv1.Policy
	budget *contextdv1.Budget
	// tokenizer counts the session's events as they are appended.
	tokenizer string
}

// settingsCache is an LRU cache of settings. Lookups name the session's incarnation, so they never find those of an
// earlier session with the same id. The zero value with a limit is ready.
type settingsCache struct {
	mu    sync.Mutex
	limit int
	bytes int
	of    map[eventlog.Incarnation]*list.Element
	order list.List // most recently used first
}

type cachedSettings struct {
	of       eventlog.Incarnation
	settings settings
	bytes    int
}

// Decoded settings take about settingsFactor times their encoded size, plus settingsOverhead bytes.
const (
	settingsFactor   = 3
	settingsOverhead = 512
)

func (c *settingsCache) get(of eventlog.Incarnation) (settings, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.of[of]
	if !ok {
		return settings{}, false
	}
	c.order.MoveToFront(e)
	return e.Value.(cachedSettings).settings, true
}

func (c *settingsCache) put(of eventlog.Incarnation, s settings) {
	entry := cachedSettings{of, s, settingsOverhead + settingsFactor*(proto.Size(s.policy)+proto.Size(s.budget))}
	if entry.bytes > cachedBytes/4 {
		return // one session must not evict all others
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.of[of]; ok {
		c.order.MoveToFront(e)
		return
	}
	if c.of == nil {
		c.of = map[eventlog.Incarnation]*list.Element{}
	}
	c.of[of] = c.order.PushFront(entry)
	c.bytes += entry.bytes
	for c.order.Len() > c.limit || c.bytes > cachedBytes {
		c.drop(c.order.Back())
	}
}

func (c *settingsCache) forget(of eventlog.Incarnation) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.of[of]; ok {
		c.drop(e)
	}
}

func (c *settingsCache) drop(e *list.Element) {
	c.order.Remove(e)
	c.bytes -= e.Value.(cachedSettings).bytes
	delete(c.of, e.Value.(cachedSettings).of)
}
