// Command peers runs other libraries that shorten contexts on the same sessions as contextd, and measures
// their contexts with the same code:
//
//	make bench-peers CORPUS=folder
//
// It writes the sessions as JSON lines, one session per line, and runs peers.py, openhands_sdk.py and
// peers.mjs on them. These are pinned in requirements.txt, requirements-openhands.txt and package-lock.json,
// and installed below .build. It reads the contexts that they would have sent, one model call per line:
//
//	{"session":"…","peer":"…","step":122,"seconds":0.02,"items":[{"i":0},{"i":3,"text":"[cleared]"}]}
//
// step is the number of messages before the call. items are the messages of the context: message i unchanged,
// with another text, with only some of its calls, or a message that the library wrote in place of others.
// seconds is the library's own time, without the conversion of messages. A library is stopped after -seconds
// on one session.
//
// The measures are reproducible to the digit. Times are not: docs/performance.md says how much they vary.
package main
