// Package budget measures contexts and says how large they may be: counters of
// tokens, the Accountant that counts blocks and events by one of them, the
// registry of models, and the Budget that is computed from a model and a request.
//
// The package is pure. It counts by the heuristic itself; exact counters are in
// the package bpe, which callers pass in.
package budget
