package log

import (
	"context"
	"sync"
)

// Call is a map in which a store keeps values as long as the context of OneCall lives. The store defines the keys.
type Call struct{ sync.Map }

type callKey struct{}

// OneCall returns a context for the reads and writes of one answer. A store with several writing processes checks
// only once per such context whether a session has changed. After that check it answers with the session of that
// moment, plus what this process has stored since. So a caller that waited for something outside the store must start
// over with a new OneCall context.
func OneCall(ctx context.Context) context.Context {
	return context.WithValue(ctx, callKey{}, &Call{})
}

// CallOf returns the map that OneCall put into the context; nil if there is none.
func CallOf(ctx context.Context) *Call {
	c, _ := ctx.Value(callKey{}).(*Call)
	return c
}

type fromMemoryKey struct{}

// FromMemory returns a context in which the store may answer reads from the process's cache of sessions, although
// other processes may have changed them. A write in this context fails with *ConflictError, and stores nothing, if
// the session has changed.
func FromMemory(ctx context.Context) context.Context {
	return context.WithValue(ctx, fromMemoryKey{}, true)
}

// IsFromMemory reports whether FromMemory made the context.
func IsFromMemory(ctx context.Context) bool { return ctx.Value(fromMemoryKey{}) != nil }
