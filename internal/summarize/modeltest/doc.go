// Package modeltest serves a model that is not there: the chat completions API and
// the Messages API over HTTP, behaving as badly as asked. Answers are built from
// exchanges with real servers, which testdata holds; the behaviours say which are
// not.
package modeltest
