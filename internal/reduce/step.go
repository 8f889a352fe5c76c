package reduce

// Step is what one reducer did in an assembly.
type Step struct {
	Reducer                   string
	TokensBefore, TokensAfter uint64
	// Touched is how many blocks or groups it changed, decisions taken earlier
	// included.
	Touched int
	// Note says what it did and why, and what it left and why.
	Note string
}
