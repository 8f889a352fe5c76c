// Package memlog is the event log in memory: the contract of eventlog.Store
// without durability. It is the daemon's store where nothing must outlive the
// process, and the model that other stores are tested against, so it prefers
// being obviously right to being fast: one lock guards everything.
package memlog
