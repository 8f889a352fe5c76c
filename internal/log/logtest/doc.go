// Package logtest has the tests that every eventlog.Store must pass, and generators of events.
//
// The test of a store calls [Run] and [RunModel]. RunModel does the same random operations on the store and on
// memlog, and compares the results.
package logtest
