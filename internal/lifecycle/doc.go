// Package lifecycle lets runtimes see what happens to their sessions and have a
// say in it. A Bus notifies watchers; Hooks ask before a compaction and report the result
// after it.
//
// Neither can hold a session up: a slow watcher loses events and learns how many, an answer
// is awaited until its deadline, and a disconnected subscriber is skipped.
package lifecycle
