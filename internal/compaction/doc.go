// Package compaction has sessions compacted, when a caller asks for it and ahead of
// need: it asks the runtime's hooks, has the summary made, records the result and notifies
// watchers. The engine decides what a compaction does; the scheduler makes summaries.
package compaction
