package log

import (
	"context"
	"sync"
)

// Call is what a store keeps for the length of one call: of a context that OneCall returned. Its
// keys and values are the store's own.
type Call struct{ sync.Map }

type callKey struct{}

// OneCall returns a context for reads and writes that together make up one answer. Within it a store to which
// other processes write need ask once whether a session has changed: what it answers after that
// is the session as it was then, with what this process has stored since. A call that waits for
// something outside the store begins again after that, with a context of its own.
func OneCall(ctx context.Context) context.Context {
	return context.WithValue(ctx, callKey{}, &Call{})
}

// CallOf returns what OneCall made; nil if the context is of no call.
func CallOf(ctx context.Context) *Call {
	c, _ := ctx.Value(callKey{}).(*Call)
	return c
}

type fromMemoryKey struct{}

// FromMemory returns a context whose reads of sessions may be answered by what the process remembers of them, although
// other processes may have changed it. A write within it that does not find the session so fails with
// *ConflictError, and nothing was stored.
func FromMemory(ctx context.Context) context.Context {
	return context.WithValue(ctx, fromMemoryKey{}, true)
}

// IsFromMemory reports whether FromMemory made the context.
func IsFromMemory(ctx context.Context) bool { return ctx.Value(fromMemoryKey{}) != nil }
