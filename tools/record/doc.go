// Command record makes the session that "contextd demo" replays. It plays a
// script of an agent's work over a copy of a repository: every command runs,
// every file is read and every edit is made, and their output is what is written.
//
//	go run ./tools/record -o cmd/contextd/internal/demo/session.jsonl
//
// The output is one contextd.v1.Event a line in protobuf's JSON form, which
// "contextd append" reads. Recording the same commit again gives the same bytes:
// ids and times come from the script's order, and what differs between machines
// and runs (directories, durations, addresses) is replaced by fixed text. The
// script names the commit that it was written for; -rev tries another.
package main
