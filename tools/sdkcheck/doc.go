// Command sdkcheck renders sessions in every provider's format and prints the messages,
// for the official SDKs' own types to check:
//
//	{"format":"anthropic","source":"…","line":"{\"role\":…}"}
//
// The line is the message's bytes, as a string. A message that was printed before is not
// printed again.
//
//	go run ./tools/sdkcheck -corpus folder
//
// Sessions are the transcripts below the folder and those that the harnesses' tests have,
// rendered at every seventh group and at the end; besides, it prints what the golden files
// of the formats hold. `make sdkcheck` gives them to check.py, to the TypeScript compiler by
// ts/generate.mjs, and to the program in go.
package main
