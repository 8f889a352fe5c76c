// Package disklog is the event log on disk: eventlog.Store over a Pebble
// database in a directory of its own. FORMAT.md next to this file says what is written,
// what is assumed of the machine, and where the guarantees end.
package disklog
