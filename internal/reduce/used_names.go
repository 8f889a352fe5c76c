package reduce

import (
	"hash/fnv"
	"slices"

	eventlog "github.com/contextd/contextd/internal/log"
)

// namesEvery is how many events a stretch of NamesOf has.
const namesEvery = 4096

// usedName is the hash of the id of a call or a group, and the event that used it.
type usedName struct {
	seq  eventlog.Seq
	hash uint32
}

func nameHash(name string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	return h.Sum32()
}

// NamesOf returns the hashes, ascending, of the ids that stretch n of the log uses, and the stretch's last event. The
// first stretch is 0. ok is false if the stretch is not complete yet or was not read.
func (c *Conversation) NamesOf(n int) (hashes []uint32, last eventlog.Seq, ok bool) {
	last = eventlog.Seq(n+1) * namesEvery
	if last > c.head || c.begun != nil {
		return nil, 0, false
	}
	for _, u := range c.names[c.nameAfter(last-namesEvery):c.nameAfter(last)] {
		hashes = append(hashes, u.hash)
	}
	slices.Sort(hashes)
	return hashes, last, true
}

// namesAfterStretches returns the hashes, ascending, of the ids used after the last complete stretch.
func (c *Conversation) namesAfterStretches() []uint32 {
	var hashes []uint32
	for _, u := range c.names[c.nameAfter(eventlog.Seq(Stretches(c.head))*namesEvery):] {
		hashes = append(hashes, u.hash)
	}
	slices.Sort(hashes)
	return hashes
}

// Stretches returns how many complete stretches a log with this head has; see NamesOf.
func Stretches(head eventlog.Seq) int { return int(head / namesEvery) }

// nameAfter returns the index of the first name that was used after an event.
func (c *Conversation) nameAfter(seq eventlog.Seq) int {
	i, _ := slices.BinarySearchFunc(c.names, seq, func(u usedName, seq eventlog.Seq) int {
		if u.seq <= seq {
			return -1
		}
		return 1
	})
	return i
}

// noteNames records the ids that a message is the first to use. An id that was used before the checkpoint makes the
// conversation incomplete, because the message belongs to a group that was not read, or because its call must be
// numbered after an older call with the id.
func (c *Conversation) noteNames(e eventlog.Event, m *eventlog.Message) {
	note := func(name string) {
		h := nameHash(name)
		if c.begun != nil && c.begun.settled && c.begun.used(h) {
			c.missing = true
		}
		c.names = append(c.names, usedName{e.Seq, h})
	}
	if m.GroupID != "" {
		if _, ok := c.byGroupID[m.GroupID]; !ok {
			note(m.GroupID)
		}
	}
	for _, b := range m.Blocks {
		if call, ok := b.(eventlog.ToolCall); ok {
			note(call.CallID)
		}
	}
}
