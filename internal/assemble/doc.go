// Package assemble puts the parts together: it reads the log, reduces it, lays
// it out, hashes it, and records what was decided. It is the edge of the pure
// core: the only place that holds sessions in memory and asks for the time.
package assemble
