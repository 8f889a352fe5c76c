// Package log defines the event log of a session: what happened, in order, and never changed after it was appended.
//
// Import it as eventlog, because its name hides the standard library's log. This module does not use that.
//
// The package is pure. It has the types of the log, the rules by which a batch of events is admitted, and the
// contract of every store ([Store]). It reads no clock and no random numbers: times and identifiers come from the
// caller. The stores are memlog, disklog and pglog. All pass one suite of tests, logtest.
package log
