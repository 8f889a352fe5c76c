// Package ledger writes down, in few tokens, what left the context: a line for
// every tool call, an index of the identifiers that stood there, and the lines
// of a result that tell the most. No model takes part, and the same input gives
// the same bytes.
package ledger
