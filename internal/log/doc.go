// Package log is the canonical event log: what happened in a session, in the
// order it happened, forever as it was appended.
//
// Import it as eventlog; the name shadows the standard library's log, which
// this module does not use.
//
// The package is pure: it holds the types of the log, the rules by which a
// batch of events is admitted, and the contract that every store keeps
// ([Store]). It knows no clock and no randomness; times and identifiers come
// from the caller. The stores are memlog, disklog and pglog, and logtest holds the
// one suite that all pass.
package log
