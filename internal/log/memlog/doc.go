// Package memlog is an eventlog.Store in memory: it keeps the contract except for durability. The daemon uses it if
// nothing must outlive the process. It is also the model against which other stores are tested, so it is simple
// rather than fast: one lock guards everything.
package memlog
