package dsh

// surface are the messages of the next request, as the harness calls them, in order. It is a list, because a file may
// have very many messages and replace very many of them.
type surface struct {
	first, last *shown
	// at has the messages by seq: of several with the same, the first.
	at map[int64]*shown
}

// shown is one of these messages. A compaction has no id.
type shown struct {
	seq int64
	id  string
	// place grows from each message to the next.
	place int
	next  *shown
}

func (s *surface) add(seq int64, id string) {
	m := &shown{seq: seq, id: id}
	if s.last == nil {
		s.first, s.at = m, map[int64]*shown{}
	} else {
		s.last.next, m.place = m, s.last.place+1
	}
	s.last = m
	s.name(m)
}

func (s *surface) name(m *shown) {
	if s.at[m.seq] == nil {
		s.at[m.seq] = m
	}
}

func (s *surface) forget(m *shown) {
	if s.at[m.seq] == m {
		delete(s.at, m.seq)
	}
}

// replace puts message seq in the place of a span, with the id of the first in it if same is set. It reports whether the
// span is there.
func (s *surface) replace(start, end, seq int64, same bool) bool {
	from, to := s.at[start], s.at[end]
	if from == nil || to == nil || to.place < from.place {
		return false
	}
	for m := from; m != to; {
		m = m.next
		s.forget(m)
	}
	if from.next = to.next; from.next == nil {
		s.last = from
	}
	s.forget(from)
	if from.seq = seq; !same {
		from.id = ""
	}
	s.name(from)
	return true
}
