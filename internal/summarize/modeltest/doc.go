// Package modeltest fakes a model's server: the chat completions API and the Messages API over HTTP, behaving as
// badly as asked. Answers are built from exchanges with real servers in testdata, except for the behaviours marked as
// not recorded.
package modeltest
