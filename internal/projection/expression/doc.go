// Package expression compiles and evaluates the expressions of the custom policy:
// CEL over the facts of one group, answered by a verdict. It is the only importer of
// cel-go in the core, and knows neither groups nor views.
//
// An expression is a pure function of the facts: CEL has no clock and no randomness,
// maps are gone through in the order of their keys, and what an evaluation may cost
// is limited, so that no expression can keep the daemon busy.
package expression
