// Package reduce turns a log into a view that fits a budget.
//
// A [Conversation] collects the events of a log into groups. A [View] is an immutable sequence of groups, with what
// was done to each. Its verbs are few: replace or clip a result, clip a text, describe media, omit thinking, drop a
// group, and collapse a run. So no reducer can split a group, change the order, or change a pinned group, and the
// most it can do to the anchor and to a human's newest words is to clip texts and describe media. A [Pipeline] runs
// the reducers from cheap to expensive. Their decisions are in the [State]: watermarks that only move forward, so
// that a context that was sent stays a prefix of the next one until a rewrite is due.
//
// The package is pure: the same events, policy, budget and state give the same view on every machine.
//
// # Words
//
// A run is the groups at the front of the log that a collapse drops. A digest replaces them. A reduction is one pass
// of the reducers. A cut is a collapse that the target forces, or that pays. The last resort follows if a cut does
// not free enough.
//
// # Where to look
//
//   - From events to groups: conversation.go, group.go, sources.go; reminders.go and live.go have what is shown
//     besides groups, boundary.go is for logs that a harness compacted.
//   - Views and their verbs: view.go, editor.go; protection.go says which results no verb replaces.
//   - Reducers, one in each file, listed in stages.go: duplicates.go, retention.go, clipping.go, thinking.go,
//     window.go.
//   - A reduction: pipeline.go, reduction.go, state.go; payback.go, prices.go and reach.go decide whether a rewrite
//     pays that nothing forces; last_resort.go and over_budget.go say what happens if nothing else helps.
//   - Digests: digest.go writes them, digest_sections.go lists their sections, summary.go quotes
//     summaries, summary_span.go proposes them.
//   - Callers' compactions: compaction_plan.go computes the decision of one, compactions.go has those of a log.
//   - Caches: result_cache.go, aged.go, digest_memo.go and texts.go from one reduction to the next;
//     digest_written.go, checkpoint.go and begun.go for the time after a restart.
package reduce
