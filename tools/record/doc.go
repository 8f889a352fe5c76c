// Command record makes the session that "contextd demo" replays. It plays a script of an agent's work on a
// copy of a repository. Commands, reads and edits are really executed, and their output is recorded.
//
//	go run ./tools/record -o cmd/contextd/internal/demo/session.jsonl
//
// The output is one contextd.v1.Event per line in protobuf's JSON form, which "contextd append" reads.
// Recording the same commit again gives the same bytes: ids and times come from the script, and text that
// differs between machines or runs (directories, durations, addresses) is replaced by fixed text. The script
// names the commit that it was written for; -rev selects another.
package main
