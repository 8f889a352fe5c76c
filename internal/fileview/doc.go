// Package fileview keeps what an agent last saw of the files that it works on: the text that
// its calls read, wrote and replaced, as far as their arguments and results show it.
package fileview
