// Package disklog is an eventlog.Store on disk: a Pebble database in a directory of its own. FORMAT.md in this
// directory says what is written, what is assumed of the machine, and what is not guaranteed.
package disklog
