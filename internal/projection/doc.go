// Package projection decides which slice of a reduced view the next request
// sees, and keeps the record that proves it: the hash of the bytes, what was
// kept, dropped and redacted, and the state from which it can be computed again.
package projection
