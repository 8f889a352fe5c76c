package render

// once keeps a message's tokens and blocks only on the first of its fragments, so that they count once.
func once(fragments []Fragment) []Fragment {
	for i := range fragments {
		if i > 0 {
			fragments[i].Tokens, fragments[i].Blocks, fragments[i].Places = 0, nil, nil
		}
	}
	return fragments
}

// divided keeps a message's tokens on the first of its fragments, and gives each fragment its own blocks with their
// events: of has, for each block, its fragment. An event without a block goes with the next block, or with the last.
func divided(m Message, fragments []Fragment, of []int) []Fragment {
	if len(fragments) == 1 {
		return fragments
	}
	for i := range fragments {
		f := &fragments[i]
		f.Blocks, f.Places, f.Repeats, f.Seqs = nil, nil, nil, nil
		if i > 0 {
			f.Tokens = 0
		}
	}
	rest := m.Seqs
	for i, b := range m.Blocks {
		f, at := &fragments[of[i]], m.place(i)
		f.Blocks, f.Places = append(f.Blocks, b), append(f.Places, at)
		for len(rest) > 0 && rest[0] <= at.Seq {
			f.Seqs, rest = append(f.Seqs, rest[0]), rest[1:]
		}
		if n := len(f.Seqs); at.Seq > 0 && (n == 0 || f.Seqs[n-1] != at.Seq) {
			f.Seqs = append(f.Seqs, at.Seq)
		}
	}
	last := &fragments[of[len(of)-1]]
	last.Seqs = append(last.Seqs, rest...)
	return fragments
}
