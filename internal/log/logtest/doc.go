// Package logtest holds the tests that every eventlog.Store passes, and the
// generators they draw events from.
//
// A store's own test is a call of [Run], and of [RunModel], which does the same
// random operations on the store and on memlog and compares what comes back.
package logtest
