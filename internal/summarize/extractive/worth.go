package extractive

import "math/bits"

// The worth of an excerpt. The numbers were chosen on recorded sessions, by how many of the names in the next calls'
// arguments a summary showed with their surroundings. A change of any of them by a factor of two makes little
// difference.
const (
	// unit leaves room for halving.
	unit = 1 << 6
	// The worth of a name grows with the logarithm of the number of texts with it, and much more with that of the
	// number of calls with it.
	nameWorth     = 16 * unit
	textWorth     = 8 * unit
	argumentWorth = 128 * unit
	// againShare divides the worth of a name for each place that already shows it; a fourth place is worth nothing.
	againShare = 16
	// edgeShare divides the worth of a name that is cut off from its surroundings.
	edgeShare = 8
	// What the assistant said has a worth of its own, and more at the end of a piece of work.
	saidFloor      = 32 * unit
	concludedFloor = 160 * unit
	// halfLife is the number of texts after which a worth is halved.
	halfLife = 48
	// overhead is the cost of an excerpt besides its bytes.
	overhead = 16
)

// worth returns the worth of showing a name.
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

// score returns the worth that an excerpt adds to the picked ones, for each byte that it takes. It never grows.
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
