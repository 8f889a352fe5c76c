// Package lifecycle lets runtimes see what happens to their sessions and have a
// say in it. A Bus tells whoever watches; Hooks ask before a compaction and tell
// the result after it.
//
// Neither can hold a session up: a slow watcher loses events and is told how many,
// an answer is waited for until its deadline, and who is gone is not waited for.
package lifecycle
