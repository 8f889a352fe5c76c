// Package assemble makes the contexts of sessions: it reads the log, has the view computed,
// lays it out, hashes it, and records what was decided. It is the edge of the pure core: the
// only place that holds sessions in memory and asks for the time.
package assemble
