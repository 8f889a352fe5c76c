// Command sdkcheck renders sessions in every provider's format and prints the messages, so that they can be
// checked against the types of the official SDKs:
//
//	{"format":"anthropic","source":"…","line":"{\"role\":…}"}
//
// line is the message's bytes, as a string. Equal messages are printed once.
//
//	go run ./tools/sdkcheck -corpus folder
//
// The sessions are the transcripts in the folder and those in the harnesses' tests, rendered at every seventh
// group and at the end. The messages in the formats' golden files are printed too. `make sdkcheck` has them
// checked by check.py, by the TypeScript compiler with ts/generate.mjs, and by the program in go.
package main
