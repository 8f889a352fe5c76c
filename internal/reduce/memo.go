package reduce

// Memo keeps what was computed of groups, which never change, so that whoever does the same
// with every request computes only what is new. It has one owner. The zero value is empty
// and ready.
type Memo[T any] struct{ kept map[*Group]*T }

// Of returns what is kept of a group; a new zero T where nothing is.
func (m *Memo[T]) Of(g *Group) *T {
	t, ok := m.kept[g]
	if !ok {
		if m.kept == nil {
			m.kept = map[*Group]*T{}
		}
		t = new(T)
		m.kept[g] = t
	}
	return t
}

// Prune forgets all other groups once they are the most.
func (m *Memo[T]) Prune(groups []*Group) {
	const slack = 64
	if len(m.kept) <= 2*len(groups)+slack {
		return
	}
	kept := make(map[*Group]*T, len(groups))
	for _, g := range groups {
		if t, ok := m.kept[g]; ok {
			kept[g] = t
		}
	}
	m.kept = kept
}
