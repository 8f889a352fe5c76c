package extractive

import "math/bits"

// What an excerpt is worth. The figures were chosen on recorded sessions by how many
// of the names in the next calls' arguments a summary showed where they were; none of them
// makes much of a difference within a factor of two.
const (
	// unit leaves room for halving.
	unit = 1 << 6
	// A name is worth something, more by the logarithm of how many texts held it, and
	// much more by that of how many calls were made with it.
	nameWorth     = 16 * unit
	textWorth     = 8 * unit
	argumentWorth = 128 * unit
	// againShare divides the worth of a name that one place shows already, twice
	// where two do; a fourth place is worth nothing.
	againShare = 16
	// edgeShare divides the worth of a name that is cut off from its surroundings.
	edgeShare = 8
	// What the assistant said is worth something for itself, more so where it ends a
	// piece of work.
	saidFloor      = 32 * unit
	concludedFloor = 160 * unit
	// halfLife is after how many texts a worth is halved.
	halfLife = 48
	// overhead is what an excerpt costs besides its bytes.
	overhead = 16
)

// worth is what it is worth to show a name.
func (s *span) worth(n int32) int {
	u := s.names[n]
	worth := nameWorth + textWorth*bits.Len(uint(u.texts)) + argumentWorth*bits.Len(uint(u.arguments))
	switch u.shown {
	case 0:
	case 1:
		worth /= againShare
	case 2:
		worth /= againShare * againShare
	default:
		return 0
	}
	return worth >> s.halvings(u.last)
}

func (s *span) halvings(clock int) int { return min((s.clock-clock)/halfLife, 10) }

// score is what an excerpt adds to what was picked, for each byte that it takes. It
// never grows.
func (s *span) score(e *excerpt) int {
	worth := e.floor >> s.halvings(e.clock)
	for _, n := range e.names {
		worth += s.worth(n)
	}
	for _, n := range e.edges {
		worth += s.worth(n) / edgeShare
	}
	return worth * 16 / (e.end - e.start + overhead)
}
