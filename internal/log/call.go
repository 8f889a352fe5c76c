package log

import (
	"context"
	"sync"
)

// Call is a scratch map for a store, which lives as long as the context that OneCall returned. The store that
// writes a key defines it.
type Call struct{ sync.Map }

type callKey struct{}

// OneCall returns a context for reads and writes that together make up one answer. A store to which other
// processes write checks only once in it whether a session has changed. After that check it answers with the
// session as it was then, plus what this process has stored since. A call that waits for something outside
// the store must then start over with a new OneCall context.
func OneCall(ctx context.Context) context.Context {
	return context.WithValue(ctx, callKey{}, &Call{})
}

// CallOf returns what OneCall made; nil if the context is of no call.
func CallOf(ctx context.Context) *Call {
	c, _ := ctx.Value(callKey{}).(*Call)
	return c
}

type fromMemoryKey struct{}

// FromMemory returns a context whose reads may be answered from the process's cache of sessions, although
// other processes may have changed them. A write in it that finds the session changed fails with
// *ConflictError and stores nothing.
func FromMemory(ctx context.Context) context.Context {
	return context.WithValue(ctx, fromMemoryKey{}, true)
}

// IsFromMemory reports whether FromMemory made the context.
func IsFromMemory(ctx context.Context) bool { return ctx.Value(fromMemoryKey{}) != nil }
