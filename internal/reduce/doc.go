// Package reduce turns a log into a view that fits a budget.
//
// A [Conversation] gathers events into atomic groups as the log grows. A [View]
// is an immutable sequence of those groups with what was done to them; its only
// verbs are stub, clip, omit thinking and collapse a leading run, so a reducer
// cannot split a group, reorder, touch what is pinned, or do more to the anchor and
// to what a human said last than clip their texts. A [Pipeline] runs [Reducer]s from
// cheap to expensive. What they decided is the [State]: watermarks that only move
// forward, so that a context once sent stays a prefix of the next one until a rewrite
// is due.
//
// The package is pure: the same events, policy, budget and state give the same
// view on every machine.
package reduce
