// Package reduce turns a log into a view that fits a budget.
//
// A [Conversation] gathers events into atomic groups as the log grows. A [View]
// is an immutable sequence of those groups with what was done to them; its only
// verbs are stub, clip, omit thinking and collapse a leading run, so a reducer
// cannot split a group, reorder, touch what is pinned, or do more to the anchor and
// to what a human said last than clip their texts. A [Pipeline] runs reducers from
// cheap to expensive. What they decided is the [State]: watermarks that only move
// forward, so that a context once sent stays a prefix of the next one until a rewrite
// is due.
//
// The package is pure: the same events, policy, budget and state give the same
// view on every machine.
//
// # Words
//
// A run is the groups at the front of the log that a collapse drops, a digest what replaces them. A
// reduction is one pass of the reducers. A cut is a collapse that frees what the target, or a price,
// asks for; the last resort is what follows where a cut is not enough.
//
// # Where to look
//
//   - From events to groups: conversation.go, group.go, sources.go; reminders.go and live.go for what
//     is shown beside them, boundary.go for logs that a harness compacted.
//   - Views and their verbs: view.go, editor.go; protection.go has what no verb takes.
//   - Reducers, one a file, listed in stages.go: duplicates.go, retention.go, clipping.go, thinking.go,
//     window.go.
//   - A reduction: pipeline.go, reduction.go, state.go; payback.go, prices.go and reach.go decide
//     whether a rewrite that nothing forces pays, last_resort.go and over_budget.go what is done when
//     nothing else helps.
//   - Digests: digest.go writes them, digest_sections.go lists their sections, summary.go quotes
//     summaries, summary_span.go proposes them.
//   - Callers' compactions: compaction_plan.go finds what one decides, compactions.go has those of a log.
//   - What only saves time: result_cache.go, aged.go, digest_memo.go and texts.go between reductions,
//     digest_written.go, checkpoint.go and begun.go over a restart.
package reduce
